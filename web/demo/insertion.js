// The part of the page that inserts words into a small cuckoo table, and shows each step.

import { CuckooTable } from "./cuckoo.js";

const [BUCKETS, SLOTS, BITS] = [8, 2, 8];
const PAUSE = 1500;
const FIRST_WORDS = 6;
const WORDS = `ant bee cat dog elk fox goat hare ibis jay kiwi lark mole newt owl puma quail rat seal toad
    ape bat cow deer eel frog gull hen lamb moth otter pig ram swan tern vole wasp wolf yak zebra
    bear boar carp crab crow dove duck finch gnat hawk lion lynx mink mouse pike robin shark slug stork trout`.split(/\s+/);
const NEXT = "cuckoo";

const element = id => document.getElementById(id);
const [form, word, outcome, grid, list] = ["insertion", "word", "outcome", "table", "steps"].map(element);
const hex = fingerprint => fingerprint.toString(16).padStart(BITS / 4, "0");
const isStill = matchMedia("(prefers-reduced-motion: reduce)");

// The table; the word in each slot, which a filter does not know; the states before and after each step of the last insertion.
let [table, words, states, playing, hash] = [];

const copy = rows => rows.map(row => [...row]);
const make = (name, text, attributes = {}) => {
    const made = Object.assign(document.createElement(name), attributes);
    made.textContent = text;
    return made;
};

function insert(text) {
    const state = step => ({ buckets: copy(table.buckets), words: copy(words), ...step });
    const before = state();
    const { fingerprint, buckets, steps } = table.insert(hash(text));
    // The steps again, one by one.
    const after = table.buckets;
    table.buckets = copy(before.buckets);
    const [first, second] = buckets;
    const free = buckets.map(bucket => table.buckets[bucket].filter(slot => slot === 0n).length);
    const place = `“${text}” has the fingerprint ${hex(fingerprint)} and the buckets ${first} and ${second}. `;
    const why =
        free[0] + free[1] === 0 ? "Both are full."
        : free[0] === free[1] ? "Both have as much room, so it goes into the first."
        : "It goes into the emptier one.";
    states = [{ ...before, both: buckets, text: place + why }];
    for (const step of steps) {
        const { fingerprint, from, fromSlot, to, slot } = step;
        const moved = from === undefined ? text : words[from][fromSlot];
        table.apply(step);
        words[to][slot] = moved;
        if (from !== undefined) words[from][fromSlot] = "";
        const how =
            from !== undefined ? `moves from bucket ${from} to its other bucket, ${to}.`
            : steps.length > 1 ? `takes the slot that is now free in bucket ${to}.`
            : `goes into bucket ${to}.`;
        states.push(state({ both: buckets, step, text: `${hex(fingerprint)}, for “${moved}”, ${how}` }));
    }
    table.buckets = after;
    const moves = steps.length - 1;
    outcome.textContent =
        moves < 0 ? `“${text}” finds no room: no bucket with an empty slot is within reach. Nothing has moved.`
        : moves === 0 ? `“${text}” is inserted. Nothing had to move.`
        : `“${text}” is inserted. ${moves === 1 ? "One fingerprint" : `${moves} fingerprints`} had to move.`;
    list.replaceChildren(...states.map(({ text }, number) => {
        const item = document.createElement("li");
        const button = make("button", text, { type: "button" });
        button.addEventListener("click", () => (clearTimeout(playing), show(number)));
        item.append(button);
        return item;
    }));
}

// Shows the table after this many steps.
function show(number) {
    const { buckets, words, both = [], step } = states[number];
    grid.replaceChildren(...buckets.map((slots, bucket) => {
        const box = make("div", "", { className: both.includes(bucket) ? "bucket both" : "bucket" });
        box.append(make("span", `bucket ${bucket}`), ...slots.map((slot, at) => {
            const isMoved = step?.to === bucket && step.slot === at;
            const shown = make("div", slot === 0n ? "empty" : hex(slot), { className: slot === 0n ? "slot free" : isMoved ? "slot moved" : "slot" });
            if (words[bucket][at]) shown.append(make("small", words[bucket][at]));
            return shown;
        }));
        return box;
    }));
    [...list.querySelectorAll("button")].forEach((button, at) => button.setAttribute("aria-pressed", at === number));
    const slotAt = (bucket, slot) => grid.children[bucket].querySelectorAll(".slot")[slot];
    if (step?.from === undefined || isStill.matches) return;
    const [start, end] = [slotAt(step.from, step.fromSlot), slotAt(step.to, step.slot)].map(slot => slot.getBoundingClientRect());
    const transform = `translate(${start.left - end.left}px, ${start.top - end.top}px)`;
    slotAt(step.to, step.slot).animate([{ transform }, { transform: "none" }], { duration: PAUSE / 2, easing: "ease-in-out" });
}

function play(number) {
    clearTimeout(playing);
    const last = states.length - 1;
    show(isStill.matches ? last : number);
    if (!isStill.matches && number < last) playing = setTimeout(play, PAUSE, number + 1);
}

// Fills a new table up to the first word after which the next one must move others, and not much further. `hashes` is that of the
// open filter.
export function start(hashes) {
    hash = hashes;
    table = new CuckooTable(BUCKETS, SLOTS, BITS);
    words = table.buckets.map(slots => slots.map(() => ""));
    const own = table.locate(hash(NEXT)).buckets;
    const hasRoom = bucket => table.buckets[bucket].includes(0n);
    WORDS.forEach((text, number) => {
        const isNear = table.locate(hash(text)).buckets.some(bucket => own.includes(bucket));
        if (own.some(hasRoom) && (number < FIRST_WORDS || isNear)) insert(text);
    });
    states = [{ buckets: table.buckets, words }];
    clearTimeout(playing);
    list.replaceChildren();
    outcome.textContent = "";
    word.value = NEXT;
    show(0);
}

form.addEventListener("submit", event => {
    event.preventDefault();
    const text = word.value.trim();
    if (!hash || !text) return;
    if (words.some(row => row.includes(text))) {
        outcome.textContent = `“${text}” is in the table. A filter would store a copy of it; this table takes each word once.`;
        return;
    }
    insert(text);
    play(0);
    word.value = WORDS.find(text => !words.some(row => row.includes(text))) ?? "";
});
element("again").addEventListener("click", () => hash && start(hash));
