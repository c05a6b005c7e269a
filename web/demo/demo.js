// The page: a filter, the answer for what is typed, and a picture of the lookup.

import { open } from "../koel.js";
import { start } from "./insertion.js";
import { picture } from "./picture.js";

const MOST_TRIES = 2_000_000;

const element = id => document.getElementById(id);
const [input, answer, svg, drop, file] = ["item", "answer", "picture", "drop", "file"].map(element);
const count = number => number.toLocaleString("en", { maximumFractionDigits: 0 });
const percent = share => `${(100 * share).toLocaleString("en", { maximumSignificantDigits: 3 })} %`;
const hex = (value, bits) => value.toString(16).padStart(Math.ceil(bits / 4), "0");

// `chance` is the last false positive that was found.
let [filter, bytes, chance] = [];

function add(name, attributes, text = "") {
    const shape = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => shape.setAttribute(key, value));
    shape.textContent = text;
    svg.append(shape);
}

const text = (x, y, of, words) => add("text", { x, y, class: of }, words);
const path = (d, of) => add("path", { d, class: of });

function chip(x, y, width, of, words) {
    add("rect", { x: x - width / 2, y: y - 16, width, height: 32, rx: 8, class: of });
    text(x, y, of, words);
}

const arrowhead = (x, y) => path(`M${x - 4} ${y - 7}l4 6l4 -6`, "arrow");

// Draws a table as a strip with its two buckets, and both buckets enlarged below. `lines` begin where the chips are: at the
// fingerprint, and, in the first table, at the hash. Returns the height.
function drawTable(top, width, { name, place, m, f, fingerprint, buckets }, lines) {
    const [strip, panels] = [top + 50, top + 128];
    const marks = buckets.map(({ index }) => 5 + ((width - 10) * (index + 0.5)) / m);
    const [first, other] = marks;
    add("rect", { x: 1, y: strip, width: width - 2, height: 22, rx: 5, class: "empty-strip" });
    for (let x = 9; x < width - 4; x += 8) path(`M${x} ${strip + 1}v20`, "tick");
    const b = buckets[0].slots.length;
    const gap = width < 560 ? 12 : 32;
    const panel = (width - gap) / 2;
    const columns = Math.min(b, Math.max(1, Math.min(4, Math.floor(panel / (20 + 8.6 * Math.ceil(f / 4))))));
    const [cell, pad] = [panel / columns, 3];
    const rows = Math.ceil(b / columns);
    // The bucket that comes first in the table is on the left, so that no lines cross.
    const order = buckets[0].index <= buckets[1].index ? [0, 1] : [1, 0];
    order.forEach((which, side) => {
        const { index, slots } = buckets[which];
        const [left, at] = [side * (panel + gap), marks[which]];
        path(`M${at - 2} ${strip + 22}L${left} ${panels - 14}h${panel}L${at + 2} ${strip + 22}z`, "zoom");
        path(`M${at} ${strip - 3}v28`, "at");
        text(left + panel / 2, panels, "bucket", `${which === 0 ? "first" : "other"}: ${width < 560 ? "" : "bucket "}${count(index)}`);
        for (let slot = 0; slot < b; slot += 1) {
            const [x, y] = [left + (slot % columns) * cell, panels + 18 + Math.floor(slot / columns) * 40];
            const of = slots[slot] === 0n ? "empty" : slots[slot] === fingerprint ? "match" : "other";
            add("rect", { x: x + pad, y, width: cell - 2 * pad, height: 34, rx: 6, class: of });
            text(x + cell / 2, y + 17, of === "empty" ? "soft" : of, of === "empty" ? "empty" : hex(slots[slot], f));
        }
    });
    // The hash selects the first bucket. This bucket and the fingerprint give the other one.
    if (lines.hash) path(`${lines.hash}C${lines.hashX} ${top + 14} ${first} ${top + 4} ${first} ${strip - 4}`, "arrow");
    if (lines.hash) arrowhead(first, strip - 4);
    const middle = (first + other) / 2;
    path(`M${first} ${strip - 4}C${first} ${strip - 38} ${other} ${strip - 38} ${other} ${strip - 4}`, "lead");
    path(`M${lines.fingerprintX} ${top - 18}C${lines.fingerprintX} ${top + 8} ${middle} ${top - 8} ${middle} ${strip - 30}`, "lead");
    path(`M${other - 4} ${strip - 11}l4 6l4 -6`, "head");
    const end = panels + 18 + rows * 40;
    text(width / 2, end + 12, "soft", `${name}${place || `, ${count(m)} buckets`}`);
    return end + 26 - top;
}

function draw(item, typed, found) {
    const width = Math.max(280, Math.min(880, Math.round(svg.parentElement.clientWidth - 34)));
    const hash = filter.hash(item);
    const { tables, lists } = picture(bytes, hash);
    element("reads").textContent = reads(tables, lists);
    element("none").textContent = none(tables, lists);
    svg.replaceChildren();
    const [middle, isNarrow] = [width / 2, width < 560];
    const shown = typed.length > 24 ? `${[...typed].slice(0, 22).join("")}…` : typed;
    let top = 24;
    const down = () => path(`M${middle} ${top + 18}v20l-4 -6m4 6l4 -6`, "arrow");
    if (isNarrow) {
        text(middle, top, "item", `“${shown}”`);
        down();
        top += 58;
    } else {
        text(middle - 172, top, "item end", `“${shown}”`);
        path(`M${middle - 162} ${top}h60l-6 -4m6 4l-6 4`, "arrow");
        text(middle - 132, top - 12, "soft", "hash");
        path(`M${middle + 98} ${top}h50l-6 -4m6 4l-6 4`, "arrow");
    }
    chip(middle, top, 180, "hash", hex(hash, 64));
    // The line from the hash leaves it below, or passes the fingerprint on the left.
    const hashX = isNarrow ? 16 : middle;
    const fromHash = isNarrow ? `M${middle - 90} ${top}H${hashX}V` : `M${middle} `;
    for (const table of tables) {
        const label = `fingerprint ${hex(table.fingerprint, table.f)}`;
        const isBeside = !isNarrow && table === tables[0];
        if (isNarrow && table === tables[0]) down();
        if (!isBeside) top += table === tables[0] ? 58 : 40;
        chip(isBeside ? middle + 258 : middle, top, 200, "mark", label);
        const hash = table === tables[0] && `${fromHash}${top + 16}`;
        top += 34 + drawTable(top + 34, width, table, { hash, hashX, fingerprintX: isBeside ? middle + 258 : middle });
    }
    for (const list of lists) {
        text(middle, top + 44, "soft", listed(list));
        top += 74;
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${top}`);
    const result = found ? "Found." : "Not found.";
    svg.setAttribute("aria-label", `A lookup of “${typed}”: ${[...tables.map(describe), ...lists.map(listed)].join("; ")}. ${result}`);
}

const NUMBERS = ["no", "one", "two", "three", "four", "five", "six"];
const number = n => NUMBERS[n] ?? count(n);

// A filter that has grown beyond its plan has several generations.
function reads({ length }, lists) {
    const buckets = length > 1 ? `${number(2 * length)} buckets, two in each of ${number(length)} generations` : "two buckets";
    const list = lists.length > 1 ? `${number(lists.length)} lists` : "a list";
    return lists.length === 0 ? buckets : length === 0 ? list : `${buckets}, and ${list}`;
}

function none({ length }, lists) {
    if (lists.length > 0) return length > 0 ? "no bucket and no list has it" : "the list does not have its hash";
    return length > 1 ? `none of the ${number(2 * length)} buckets has it` : "neither bucket has it";
}

function listed({ keys, isFound }) {
    if (keys === 0) return "This part of the filter is empty.";
    return `a sorted list of ${count(keys)} hashes, ${isFound ? "with" : "without"} this one`;
}

function describe({ f, fingerprint, buckets }) {
    const contents = slots => slots.map(slot => (slot === 0n ? "an empty slot" : hex(slot, f))).join(", ");
    const parts = buckets.map(({ index, slots }) => `bucket ${index} has ${contents(slots)}`);
    return [`fingerprint ${hex(fingerprint, f)}`, ...parts].join("; ");
}

function look() {
    if (!filter) return;
    const typed = input.value;
    // The filter may have integers instead of words.
    const number = /^-?\d{1,20}$/.test(typed) ? BigInt(typed) : 2n ** 64n;
    const isNumber = -(2n ** 63n) <= number && number < 2n ** 64n && !filter.has(typed) && filter.has(number);
    const [item, shown] = isNumber ? [number, `The number ${typed}`] : [typed, `“${typed}”`];
    const found = filter.has(item);
    const rate = filter.rate > 0 ? `One absent word in ${count(1 / filter.rate)} is found by chance.` : "";
    const tried = found && typed === chance ? " Nobody inserted it: this is a false positive." : "";
    const copies = found && filter.count(item) > 1 ? ` It has ${count(filter.count(item))} copies.` : "";
    const verdict = document.createElement("strong");
    verdict.textContent = found ? `${shown} is probably in the filter.` : `${shown} is not in the filter.`;
    answer.replaceChildren(verdict, found ? `${tried}${copies} ${rate}` : " This answer is always right.");
    answer.className = found ? "yes" : "no";
    draw(item, typed, found);
}

// Tries words that no list of words has, until one is found.
function findFalsePositive() {
    if (!filter) return;
    for (let n = 1; n <= MOST_TRIES; n += 1) {
        if (!filter.has(`cuckoo-${n}`)) continue;
        chance = input.value = `cuckoo-${n}`;
        look();
        return;
    }
    answer.textContent = `None of ${count(MOST_TRIES)} absent words is found: false positives are rarer in this filter.`;
    answer.className = "";
}

function lookupsPerSecond() {
    const words = Array.from({ length: 1000 }, (_, n) => `word ${n}`);
    let [lookups, start, found] = [0, performance.now(), 0];
    for (; performance.now() < start + 30; lookups += words.length) for (const word of words) found += filter.has(word);
    return (1000 * lookups) / (performance.now() - start);
}

function list(name) {
    const { kind, length, load, rate, bitsPerItem, parameters } = filter;
    const { table, f, b, buckets, bucketsPerShard, addressing, seed, hasher } = parameters;
    const facts = {
        file: name,
        kind,
        items: count(length),
        "slots taken": percent(load),
        "false positives": rate > 0 ? percent(rate) : "none",
        size: `${count(filter.bytes)} bytes`,
        "bits per item": length > 0 ? bitsPerItem.toFixed(2) : "–",
        table,
        "fingerprint bits": f,
        "slots per bucket": b,
        [buckets === undefined ? "buckets per shard" : "buckets"]: count(buckets ?? bucketsPerShard),
        addressing,
        "hash, seed": `${hasher}, ${seed}`,
        "lookups per second": lookupsPerSecond().toLocaleString("en", { maximumSignificantDigits: 2 }),
    };
    const entry = ([name, value]) => {
        const group = document.createElement("div");
        group.append(document.createElement("dt"), document.createElement("dd"));
        [group.firstChild.textContent, group.lastChild.textContent] = [name, value];
        return group;
    };
    element("facts").replaceChildren(...Object.entries(facts).map(entry));
}

async function show(name, source) {
    element("error").textContent = "";
    try {
        const next = new Uint8Array(await source());
        const opened = await open(next);
        filter?.close();
        [filter, bytes, chance] = [opened, next];
        list(name);
        look();
        start(text => opened.hash(text));
    } catch (error) {
        if (!filter) answer.textContent = "No filter is open. Choose one below.";
        element("error").textContent = `${name}: ${error.message}${error.kind ? ` (${error.kind})` : ""}`;
    }
}

async function fetched(url) {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`the server says ${response.status}; README.md has the command that makes this file`);
    return response.arrayBuffer();
}

input.addEventListener("input", look);
element("chance").addEventListener("click", findFalsePositive);
addEventListener("resize", look);
file.addEventListener("change", () => file.files[0] && show(file.files[0].name, () => file.files[0].arrayBuffer()));
for (const type of ["dragenter", "dragover", "dragleave", "drop"]) {
    document.addEventListener(type, event => {
        event.preventDefault();
        drop.classList.toggle("over", type === "dragenter" || type === "dragover");
        const dropped = type === "drop" && event.dataTransfer.files[0];
        if (dropped) show(dropped.name, () => dropped.arrayBuffer());
    });
}
await show("words.koel", () => fetched("words.koel"));
