"use strict";
// Shows the maps of the sentences of the page. What stands in the data is set as text, never as HTML.
// The data's form is that of report.py; a map is known by its number, which is its place in page.maps.

const $ = (id) => document.getElementById(id);
let page; // the index
let aers; // Uint16Array [maps, then systems; sentences], in 1 / 10,000
let map = 0; // numbers of what is shown
let sentence = 0;
let shown = []; // the alignments side by side: numbers of systems, the one after the last is the map

async function unpack(id) {
  const bytes = Uint8Array.from(atob($(id).textContent), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

function element(tag, text = "", properties = {}) {
  const { role, label, scope, ...others } = properties;
  const made = Object.assign(document.createElement(tag), others);
  made.textContent = text;
  for (const [name, value] of Object.entries({ role, scope, "aria-label": label })) if (value) made.setAttribute(name, value);
  return made;
}

// A row of a table, with a cell for each text.
function tableRow(texts) {
  const row = element("tr");
  row.append(...texts.map((text) => element("td", text)));
  return row;
}

const percent = (tenThousandths) => (tenThousandths / 100).toFixed(2);
// The AER of a sentence, of the map or system whose AER the list shows.
const aerOf = (place) => aers[($("scored").value === "map" ? map : page.maps.length + Number($("scored").value)) * page.sentences.length + place];

// ---- one sentence, decoded

// Gold of each cell, [target words][source words]: "sure", "possible" or "".
function goldOf({ source, target, sure, possible }) {
  const gold = target.words.map(() => Array(source.words.length).fill(""));
  for (const [i, j] of possible) gold[j][i] = "possible";
  for (const [i, j] of sure) gold[j][i] = "sure";
  return gold;
}

async function decode(place) {
  const { source, target } = page.sentences[place];
  const [S, T] = [source.pieces.length, target.pieces.length];
  const buffer = await unpack(`s${place}`);
  const [words, columns] = [target.words.length, source.words.length];
  const mapBytes = Math.ceil((words * columns) / 8);
  const rows = (buffer.byteLength - page.maps.length * mapBytes) / (S + 2); // of all planes
  const halves = Uint32Array.from(new Uint16Array(buffer, 0, rows), (half) => half << 16); // of float32
  const scales = new Float32Array(halves.buffer);
  const steps = new Uint8Array(buffer, 2 * rows, rows * S);
  const bits = new Uint8Array(buffer, (2 + S) * rows);

  return {
    gold: goldOf(page.sentences[place]),
    // [target words][source words + 1], null last: sum over a source word's subwords, mean over a target word's
    values(number) {
      const { kind, setting, layer, head } = page.maps[number];
      const { heads, plane } = page.kinds[kind];
      const first = (plane + layer * (heads + 1) + (head ?? heads)) * T + page.settings[setting];
      const result = Array.from({ length: words }, () => Array(columns + 1).fill(0));
      const pieces = Array(words).fill(0);
      for (const word of target.pieces) if (word >= 0) pieces[word]++;
      target.pieces.forEach((j, t) => {
        if (j < 0) return;
        source.pieces.forEach((i, s) => {
          result[j][i < 0 ? columns : i] += (steps[(first + t) * S + s] * scales[first + t]) / page.steps / pieces[j];
        });
      });
      return result;
    },
    linked(number, i, j) {
      const bit = i * words + j;
      return ((bits[number * mapBytes + (bit >> 3)] >> (7 - (bit & 7))) & 1) === 1;
    },
  };
}

// ---- the chosen sentence

const VERDICTS = { linked: "linked", right: "right", wrong: "wrong link", missed: "missed sure link", null: "unaligned", "null missed": "unaligned against a sure link" };

// What a link is, "" if neither gold nor prediction have it.
const verdict = (linked, gold) => (linked ? (!page.gold ? "linked" : gold ? "right" : "wrong") : gold === "sure" ? "missed" : "");
// What only a page with a gold shows.
const ifGold = (text) => (page.gold ? [text] : []);

// What it is that a target word of the shown map has no link; "" if it has one.
function nullVerdict(decoded, j, columns) {
  for (let i = 0; i < columns; i++) if (decoded.linked(map, i, j)) return "";
  return decoded.gold[j].includes("sure") ? "null missed" : "null";
}

async function showSentence() {
  const wanted = sentence;
  const entry = page.sentences[wanted];
  const mapped = page.maps.length > 0;
  const decoded = entry.status !== "ok" ? null : mapped ? await decode(wanted) : { gold: goldOf(entry) };
  if (wanted !== sentence) return; // another one was chosen meanwhile
  $("sentence-title").textContent = `Sentence ${entry.id} (line ${entry.id + 1})${mapped ? `: ${page.maps[map].name}` : ""}`;
  $("link").hash = `sentence=${entry.id}${mapped ? `&map=${map}` : ""}`;
  $("summary").textContent = decoded ? bySystems(entry) : `No maps: ${entry.status}.`;
  for (const side of ["source", "target"]) {
    const words = entry[side].words.map((word) => element("span", word, { className: "word" }));
    $(side).replaceChildren(...words.flatMap((word) => [word, " "]));
  }
  $("readout").textContent = "Point at a cell, tap it, or move to it with the arrow keys.";
  if (mapped) drawMap(entry, decoded);
  showBeside(entry, decoded);
  showMore();
}

// Fills a table with a row for each target word. `cell(i, j)` says what a cell shows: its classes, what it reads out
// after its words, and its value from 0 to 1.
function fill(table, columns, rows, cell) {
  const heads = columns.map((word) => element("th", word, { scope: "col", title: word }));
  const header = element("tr");
  header.append(element("td", "", { role: "gridcell" }), ...heads);
  const [head, body] = [element("thead"), element("tbody")];
  head.append(header);
  rows.forEach((word, j) => {
    const row = element("tr");
    row.append(element("th", word, { scope: "row", title: word }));
    columns.forEach((other, i) => {
      const { classes, texts, value = 0 } = cell(i, j);
      const said = texts.filter(Boolean).join(", ");
      const label = `${other} – ${word}${said && `: ${said}`}`;
      const made = element("td", "", { role: "gridcell", label, tabIndex: -1, className: `cell ${classes.join(" ")}` });
      made.style.setProperty("--value", value);
      row.append(made);
    });
    body.append(row);
  });
  table.replaceChildren(head, body);
  const corner = table.querySelector("td.cell");
  if (corner) corner.tabIndex = 0;
  return heads;
}

function drawMap(entry, decoded) {
  $("map").replaceChildren();
  $("links").tBodies[0].replaceChildren();
  if (!decoded) return;
  const source = [...entry.source.words, "null"];
  const columns = source.length - 1;
  const linkedBy = entry.aligned.map((links) => new Set(links.map(String))); // of each system
  const counts = { linked: 0, right: 0, wrong: 0, missed: 0, null: 0, "null missed": 0 };
  const values = decoded.values(map);
  const heads = fill($("map"), source, entry.target.words, (i, j) => {
    const value = values[j][i];
    const gold = i < columns ? decoded.gold[j][i] : "";
    const found = i < columns ? verdict(decoded.linked(map, i, j), gold) : nullVerdict(decoded, j, columns);
    if (found) counts[found]++;
    const bySystem = linkedBy.map((links) => links.has(`${i},${j}`));
    const by = page.systems.filter((_, k) => bySystem[k]).join(", ");
    if (gold || found || by) {
      const predicted = ["linked", "right", "wrong"].includes(found);
      const said = VERDICTS[found] ?? (gold ? "possible, not needed" : "–");
      const texts = [value.toPrecision(3), ...ifGold(gold || "–"), ...[predicted, ...bySystem].map((yes) => (yes ? "yes" : "–")), ...ifGold(said)];
      $("links").tBodies[0].append(tableRow([source[i], entry.target.words[j], ...texts]));
    }
    const texts = [value.toPrecision(3), gold && `gold ${gold}`, VERDICTS[found], by && `linked by ${by}`];
    return { classes: [gold, found, by && "aligned"], texts, value: value / (Math.max(...values[j]) || 1) };
  });
  heads[columns].className = "special";
  const links = page.gold
    ? `AER ${percent(aers[map * page.sentences.length + sentence])} %: ${counts.right} right, ${counts.wrong} wrong links, ${counts.missed} missed sure links, `
    : `${counts.linked} links, `;
  const against = ifGold(`, ${counts["null missed"]} of them against a sure link`).join("");
  $("summary").textContent = `${links}${counts.null + counts["null missed"]} target words unaligned${against}. ${bySystems(entry)}`;
}

// What each system makes of a sentence.
function bySystems({ aligned, sure, possible }) {
  const gold = new Set([...sure, ...possible].map(String));
  return aligned.map((links, k) => {
    const right = links.filter((link) => gold.has(String(link))).length;
    return page.gold ? `${page.systems[k]}: ${right} right, ${links.length - right} wrong links. ` : `${page.systems[k]}: ${links.length} links. `;
  }).join("");
}

// ---- alignments side by side

const systemName = (number) => page.systems[number] ?? "the map above";

// Each link of some of the sets -> the numbers of those that have it.
function owners(sets) {
  const found = new Map();
  sets.forEach((links, k) => links.forEach((link) => found.set(link, [...(found.get(link) ?? []), k])));
  return found;
}

const partly = (sets) => [...owners(sets)].filter(([, has]) => has.length < sets.length);

// How many links not all of the systems shown have; the map's links are not at hand.
const differing = (place) =>
  partly(shown.filter((number) => number in page.systems).map((number) => new Set(page.sentences[place].aligned[number].map(String)))).length;

function linksOf(number, entry, decoded) {
  if (number in page.systems) return new Set(entry.aligned[number].map(String));
  const links = new Set();
  entry.source.words.forEach((_, i) => entry.target.words.forEach((_, j) => decoded.linked(map, i, j) && links.add(`${i},${j}`)));
  return links;
}

function showBeside(entry, decoded) {
  if (!page.systems.length) return;
  $("differences").tBodies[0].replaceChildren();
  $("beside").replaceChildren();
  $("difference").textContent = "";
  if (!decoded) return;
  const sets = shown.map((number) => linksOf(number, entry, decoded));
  const different = new Map(partly(sets));
  const all = owners(sets).size - different.size;
  if (shown.length > 1) {
    const only = shown.map((number, k) => `${[...different.values()].filter((has) => String(has) === String(k)).length} only in ${systemName(number)}`);
    $("difference").textContent = `${all} links in all, ${different.size} in some: ${only.join(", ")}.`;
  }
  shown.forEach((number, k) => $("beside").append(drawLinks(systemName(number), entry, decoded.gold, sets[k], different)));
  for (const [link, has] of different) {
    const [i, j] = link.split(",").map(Number);
    const names = has.map((k) => systemName(shown[k])).join(", ");
    $("differences").tBodies[0].append(tableRow([entry.source.words[i], entry.target.words[j], ...ifGold(decoded.gold[j][i] || "–"), names]));
  }
}

function drawLinks(name, { source, target }, gold, links, different) {
  const table = element("table", "", { className: "map links", role: "grid", label: name });
  fill(table, source.words, target.words, (i, j) => {
    const truth = gold[j][i];
    const found = verdict(links.has(`${i},${j}`), truth);
    const only = links.has(`${i},${j}`) && different.has(`${i},${j}`);
    return { classes: [truth, found, only && "only"], texts: [VERDICTS[found], truth && `gold ${truth}`, only && "not in all"] };
  });
  table.createCaption().textContent = name;
  const region = element("div", "", { className: "scroll" });
  region.append(table);
  return region;
}

// Reads out a cell of any map, and marks its words.
function readOut(cell) {
  if (!cell) return;
  for (const marked of document.querySelectorAll(".at")) marked.classList.remove("at");
  const table = cell.closest("table");
  $("readout").textContent = `${table.caption ? `${table.caption.textContent}: ` : ""}${cell.getAttribute("aria-label")}`;
  const [column, row] = [cell.cellIndex, cell.parentNode.rowIndex];
  const words = [cell.parentNode.cells[0], table.rows[0].cells[column], $("source").children[column - 1], $("target").children[row - 1]];
  for (const word of words) word?.classList.add("at");
}

// Tells the style sheet what goes on to the right.
function showMore() {
  for (const region of document.querySelectorAll("nav, .scroll, .grids")) region.classList.toggle("more", region.scrollLeft + region.clientWidth < region.scrollWidth - 1);
}

// ---- what is chosen

const numberOf = (wanted) => page.maps.findIndex((place) => Object.entries(wanted).every(([name, value]) => place[name] === value));

// The map as shown but for `change`; where there is no such head (some kinds have none), that of the whole layer.
function change(changed) {
  const { name, ...place } = page.maps[map];
  const wanted = { ...place, ...changed };
  const number = numberOf(wanted);
  return chooseMap(number >= 0 ? number : numberOf({ ...wanted, head: null }));
}

function chooseMap(number) {
  map = number;
  const { kind, setting, layer, head } = page.maps[map];
  const { heads } = page.kinds[kind];
  $("kind").value = kind;
  $("setting").value = setting;
  const headName = head === null ? "whole layer" : `head ${head}`;
  for (const [id, value, max, text] of [["layer", layer, page.layers.length - 1, page.layers[layer]], ["head", head ?? heads, heads, headName]]) {
    Object.assign($(id), { max, value, disabled: max === 0 });
    $(id).setAttribute("aria-valuetext", text);
    $(`${id}-name`).textContent = text;
  }
  for (const button of document.querySelectorAll("[data-map]")) button.setAttribute("aria-current", button.dataset.map === String(map));
  showList();
  return showSentence();
}

function chooseSentence(place) {
  sentence = place;
  $("sentences").value = place;
  return showSentence();
}

function showList() {
  const wanted = $("filter").value.toLowerCase();
  const text = ({ id, source, target }) => `${id} ${source.words.join(" ")}\n${target.words.join(" ")}`.toLowerCase();
  const places = [...page.sentences.keys()].filter((place) => text(page.sentences[place]).includes(wanted));
  const sign = { worst: -1, best: 1, corpus: 0 }[$("order").value] ?? 0;
  if ($("order").value === "differ") {
    const counts = page.sentences.map((_, place) => differing(place));
    places.sort((a, b) => counts[b] - counts[a]);
  } else if (sign) places.sort((a, b) => sign * (aerOf(a) - aerOf(b)));
  const wide = String(page.sentences.at(-1).id).length;
  const option = (place) => {
    const { id, source, status } = page.sentences[place];
    const texts = [String(id).padStart(wide, "\u00a0"), ...(page.gold ? [percent(aerOf(place)).padStart(6, "\u00a0")] : []), status === "ok" ? source.words.join(" ") : `(${status})`];
    return element("option", texts.join("\u00a0 "), { value: place });
  };
  const nothing = element("option", "No sentence has this text or number.", { value: "", disabled: true });
  $("sentences").replaceChildren(...(places.length ? places.map(option) : [nothing]));
  $("sentences").value = sentence;
  $("found").textContent = `${places.length} of ${page.sentences.length}`;
}

// The list in a new order or with another filter, from its top.
function renewList() {
  showList();
  $("sentences").scrollTop = 0;
}

// Shows what a link to a sentence names: `#sentence=ID&map=NUMBER`; other links are left to the browser.
async function followHash() {
  const named = new URLSearchParams(location.hash.slice(1));
  const place = page.sentences.findIndex(({ id }) => String(id) === named.get("sentence"));
  if (place < 0) return;
  sentence = place;
  const number = Number(named.get("map") ?? map);
  await (page.maps.length ? chooseMap(number in page.maps ? number : map) : chooseSentence(place));
  $("sentences-section").scrollIntoView();
}

// The sentence `by` places further down the list.
function step(by) {
  const { options, selectedIndex } = $("sentences");
  const option = options[selectedIndex + by] ?? (selectedIndex < 0 && options[0]);
  return option?.value && chooseSentence(Number(option.value));
}

// ---- events

const STEPS = { n: () => step(1), p: () => step(-1) };
const MAP_STEPS = {
  l: () => change({ layer: Math.min(page.maps[map].layer + 1, page.layers.length - 1) }),
  L: () => change({ layer: Math.max(page.maps[map].layer - 1, 0) }),
  h: () => turn("head", 1),
  H: () => turn("head", -1),
  k: () => turn("kind", 1),
  s: () => turn("setting", 1),
};

// The next of all values of a control, round and round.
function turn(id, by) {
  const control = $(id);
  const size = id === "head" ? Number(control.max) + 1 : control.length;
  const place = ((id === "head" ? Number(control.value) : control.selectedIndex) + by + size) % size;
  return change({ [id]: id === "head" ? headAt(place) : control.options[place].value });
}

const headAt = (value) => (Number(value) === page.kinds[page.maps[map].kind].heads ? null : Number(value));

async function mapKey(event) {
  const cell = event.target.closest("td.cell");
  if (!cell || event.ctrlKey || event.altKey || event.metaKey) return;
  const [row, column] = [cell.parentNode.rowIndex, cell.cellIndex];
  const table = cell.closest("table");
  const moves = { ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], Home: [row, 1], End: [row, cell.parentNode.cells.length - 1] };
  const keys = page.maps.length ? { ...STEPS, ...MAP_STEPS } : STEPS;
  if (event.key in moves) {
    event.preventDefault();
    focusCell(table, ...moves[event.key]);
  } else if (Object.hasOwn(keys, event.key)) {
    event.preventDefault();
    const place = [...document.querySelectorAll("table.map")].indexOf(table);
    await keys[event.key]();
    const drawn = document.querySelectorAll("table.map")[place];
    if (drawn?.rows.length > 1) focusCell(drawn, Math.min(row, drawn.rows.length - 1), Math.min(column, drawn.rows[1].cells.length - 1));
  }
}

function focusCell(table, row, column) {
  const cell = table.rows[row]?.cells[column];
  if (!cell?.matches("td.cell")) return;
  for (const other of table.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  cell.tabIndex = 0;
  cell.focus();
}

function turnTheme() {
  const themes = { "": "light", light: "dark", dark: "" };
  const theme = themes[document.documentElement.style.colorScheme];
  document.documentElement.style.colorScheme = theme;
  $("theme").textContent = `Theme: ${theme || "automatic"}`;
}

function listen() {
  window.addEventListener("hashchange", followHash);
  $("theme").addEventListener("click", turnTheme);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.matches("[data-map]")) {
      chooseMap(Number(button.dataset.map));
      $("sentence-title").focus();
      $("sentences-section").scrollIntoView();
    }
  });
  for (const name of ["pointerover", "click", "focusin"]) document.addEventListener(name, (event) => readOut(event.target.closest("table.map td.cell")));
  document.addEventListener("keydown", mapKey);
  document.addEventListener("scroll", showMore, true);
  new ResizeObserver(showMore).observe(document.body);
  $("filter").addEventListener("input", renewList);
  for (const id of ["order", "scored"]) $(id)?.addEventListener("change", renewList);
  $("sentences").addEventListener("change", () => chooseSentence(Number($("sentences").value)));
  $("shown")?.addEventListener("change", chooseShown);
  if (!page.maps.length) return;
  $("kind").addEventListener("change", () => change({ kind: $("kind").value }));
  $("setting").addEventListener("change", () => change({ setting: $("setting").value }));
  $("layer").addEventListener("input", () => change({ layer: Number($("layer").value) }));
  $("head").addEventListener("input", () => change({ head: headAt($("head").value) }));
}

function chooseShown() {
  shown = [...document.querySelectorAll("#shown input:checked")].map((box) => Number(box.value));
  showList();
  return showSentence();
}

function colourHeads() {
  const cells = [...document.querySelectorAll("button.heat")];
  const values = cells.map((cell) => Number(cell.textContent));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  cells.forEach((cell, k) => cell.style.setProperty("--value", (high - values[k]) / (high - low || 1)));
}

async function start() {
  colourHeads();
  page = JSON.parse(new TextDecoder().decode(await unpack("index")));
  aers = new Uint16Array(await unpack("aers"));
  shown = [...page.systems.keys()];
  listen();
  if (page.maps.length) {
    $("kind").append(...Object.keys(page.kinds).map((name) => element("option", name, { value: name })));
    $("setting").append(...Object.keys(page.settings).map((name) => element("option", name.toUpperCase(), { value: name })));
    await chooseMap(page.best);
  } else {
    showList();
    await chooseSentence(Number($("sentences").options[0].value));
  }
  await followHash();
  document.body.dataset.ready = "yes";
}

start().catch((error) => {
  $("problem").textContent = `The sentences cannot be shown: ${error.message}. A browser of 2024 or later is needed.`;
  throw error;
});
