"""What the tests do with a page in a browser."""

import json
import time


def requested(driven):
    """The addresses that were asked for since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in driven.get_log("performance")]
    return {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}


class Browser:
    """The page in the browser."""

    def __init__(self, driven):
        self.driven = driven

    def open(self, page):
        self.driven.get_log("browser")
        self.driven.get_log("performance")
        self.driven.get(page.as_uri())
        self.until(lambda: self.run("return document.body.dataset.ready") == "yes")

    def run(self, script, *args):
        return self.driven.execute_script(script, *args)

    def find(self, selector):
        return self.driven.find_element("css selector", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def text(self, selector):
        return self.texts(selector)[0]

    def until(self, true):
        end = time.monotonic() + 10
        while not true():
            assert time.monotonic() < end, self.text("#problem") or self.driven.get_log("browser")
            time.sleep(0.01)

    def until_title(self, *parts):
        """Until the map shown is one whose heading holds ``parts``."""
        self.until(lambda: all(part in self.text("#sentence-title") for part in parts))

    def press(self, keys):
        """As a keyboard does: to whatever has the focus now. An element held from before may have been drawn anew."""
        from selenium.webdriver import ActionChains  # only where there is a browser

        ActionChains(self.driven).send_keys(keys).perform()

    def choose_map(self, number):
        self.run("document.querySelector(`button.heat[data-map='${arguments[0]}']`).click()", number)

    def choose_sentence(self, place):
        script = "const s = document.getElementById('sentences'); s.value = arguments[0]; "
        self.run(script + "s.dispatchEvent(new Event('change'))", place)
