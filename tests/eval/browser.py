"""What a page did in the browser of the fixture ``chromium``."""

import json


def requested(driven):
    """The addresses that were asked for since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in driven.get_log("performance")]
    return {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
