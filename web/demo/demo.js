// The page: a filter, the answer for what is typed, and a picture of the lookup.

import { open } from "../koel.js";
import { picture } from "./picture.js";

const element = id => document.getElementById(id);
const [input, answer, svg, drop, file] = ["item", "answer", "picture", "drop", "file"].map(element);
const count = number => number.toLocaleString("en", { maximumFractionDigits: 0 });
const percent = share => `${(100 * share).toLocaleString("en", { maximumSignificantDigits: 3 })} %`;
const hex = (value, bits) => value.toString(16).padStart(Math.ceil(bits / 4), "0");

let [filter, bytes] = [];

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

const room = (ends, start) => ends[ends.indexOf(start) + 1] - start;

// Draws a table as a strip with its two buckets, and both buckets enlarged below. Returns the height.
function drawTable(top, width, { name, place, m, f, fingerprint, buckets }, sources) {
    const [strip, panels] = [top + 34, top + 112];
    const marks = buckets.map(({ index }) => 5 + ((width - 10) * (index + 0.5)) / m);
    // The label is where most room is between the marks, so that no line crosses it.
    const ends = [0, ...marks, width].sort((one, other) => one - other);
    const [start] = width < 560 ? ends : ends.slice(0, 3).sort((one, other) => room(ends, other) - room(ends, one));
    text(start > 0 ? start + 12 : 0, top + 18, "soft start", width < 560 ? name : `${name}${place || `, ${count(m)} buckets`}`);
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
        const [from, aside] = sources ? [sources[which], at - sources[which]] : [];
        if (sources) path(`M${from} ${top - 18}c0 ${20 + 8 * which} ${aside} 0 ${aside} 26V${strip - 3}`, "lead");
        path(`M${at} ${strip - 3}v28`, "at");
        text(left + panel / 2, panels, "bucket", `${width < 560 ? "" : which === 0 ? "first: " : "other: "}bucket ${count(index)}`);
        for (let slot = 0; slot < b; slot += 1) {
            const [x, y] = [left + (slot % columns) * cell, panels + 18 + Math.floor(slot / columns) * 40];
            const of = slots[slot] === 0n ? "empty" : slots[slot] === fingerprint ? "match" : "other";
            add("rect", { x: x + pad, y, width: cell - 2 * pad, height: 34, rx: 6, class: of });
            text(x + cell / 2, y + 17, of === "empty" ? "soft" : of, of === "empty" ? "empty" : hex(slots[slot], f));
        }
    });
    return panels - top + 18 + rows * 40;
}

function draw(item, typed, found) {
    const width = Math.max(280, Math.min(880, Math.round(svg.parentElement.clientWidth - 34)));
    const { x, tables, lists } = picture(bytes, filter.hash(item));
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
    chip(middle, top, 180, "hash", hex(x, 64));
    for (const table of tables) {
        const label = `fingerprint ${hex(table.fingerprint, table.f)}`;
        const isBeside = !isNarrow && table === tables[0];
        if (isNarrow && table === tables[0]) down();
        if (!isBeside) top += table === tables[0] ? 58 : 40;
        chip(isBeside ? middle + 258 : middle, top, 200, "mark", label);
        top += 34 + drawTable(top + 34, width, table, isBeside && [middle, middle + 258]);
    }
    for (const list of lists) {
        text(middle, top + 44, "soft", listed(list));
        top += 74;
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${top}`);
    const result = found ? "Found." : "Not found.";
    svg.setAttribute("aria-label", `A lookup of “${typed}”: ${[...tables.map(describe), ...lists.map(listed)].join("; ")}. ${result}`);
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
    const chance = filter.rate > 0 ? `One absent word in ${count(1 / filter.rate)} is found by chance.` : "";
    const copies = found && filter.count(item) > 1 ? ` It has ${count(filter.count(item))} copies.` : "";
    const verdict = document.createElement("strong");
    verdict.textContent = found ? `${shown} is probably in the filter.` : `${shown} is not in the filter.`;
    answer.replaceChildren(verdict, found ? `${copies} ${chance}` : " This answer is always right.");
    answer.className = found ? "yes" : "no";
    draw(item, typed, found);
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
        [filter, bytes] = [opened, next];
        list(name);
        look();
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
