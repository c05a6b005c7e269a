// Opens the demo in Chromium, narrow and wide, light and dark. Prints all problems and saves pictures.
//     node demo.mjs PICTURES GROWING NUMBERS BEYOND
// GROWING is a growing filter of the same words, NUMBERS a filter with the integer 92, and BEYOND one that has grown beyond its
// plan. Run it where puppeteer-core is installed.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import puppeteer from "puppeteer-core";

const [pictures, growing, numbers, beyond] = process.argv.slice(2);
const types = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };
const server = createServer((request, response) => {
    const path = join(process.env.WEB, normalize(new URL(request.url, "http://localhost").pathname));
    response.setHeader("content-type", types[extname(path)] ?? "application/octet-stream");
    response.statusCode = existsSync(path) ? 200 : 404;
    response.end(existsSync(path) ? readFileSync(path) : "");
});
await new Promise(listening => server.listen(0, "127.0.0.1", listening));
const origin = `http://127.0.0.1:${server.address().port}`;
const problems = new Set();
const expect = (holds, problem) => holds || problems.add(problem);

// Returns what is wrong with the page as it is shown. Runs in the browser.
function look() {
    const parts = color => color.match(/[\d.]+/g).map(Number);
    const luminance = color => {
        const linear = part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        const [r, g, b] = parts(color).map(part => linear(part / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const isClear = color => parts(color)[3] === 0;
    // The text of a chip or a slot follows its rectangle.
    const boxOf = element => (element.previousElementSibling?.matches("svg rect") ? element.previousElementSibling : null);
    const behind = element => {
        if (boxOf(element)) return getComputedStyle(boxOf(element)).fill;
        const color = getComputedStyle(element).backgroundColor;
        return isClear(color) ? behind(element.parentElement) : color;
    };
    const found = [];
    const excess = document.documentElement.scrollWidth - innerWidth;
    if (excess > 0) found.push(`the page is ${excess} px too wide`);
    const frame = document.querySelector("svg").getBoundingClientRect();
    const isText = ({ childNodes: [first] }) => first?.nodeType === Node.TEXT_NODE && first.data.trim();
    for (const element of [...document.querySelectorAll("body :not(script, noscript)")].filter(isText)) {
        const [style, words, isDrawn] = [getComputedStyle(element), element.textContent.trim(), element.matches("svg text")];
        const colors = [isDrawn ? style.fill : style.color, behind(element)];
        const [dark, light] = colors.map(luminance).sort((one, other) => one - other);
        const contrast = (light + 0.05) / (dark + 0.05);
        if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(2)}: ${words}`);
        const { left, right, bottom, height } = element.getBoundingClientRect();
        const size = parseFloat(style.fontSize) * (isDrawn ? element.ownerSVGElement.getScreenCTM().a : 1);
        if (size < 12.5) found.push(`letters of ${size.toFixed(1)} px: ${words}`);
        if (element.scrollWidth > element.clientWidth + 1 && !isDrawn && style.overflow === "hidden") found.push(`cut: ${words}`);
        const isCut = left < frame.left - 1 || right > frame.right + 1 || bottom > frame.bottom + 1;
        if (isDrawn && isCut) found.push(`cut off: ${words}`);
        if (isDrawn && height < 11) found.push(`${height} px high: ${words}`);
        const box = boxOf(element)?.getBoundingClientRect();
        if (box && (left < box.left || right > box.right)) found.push(`wider than its box: ${words}`);
    }
    return found;
}

// Chromium does not run as root in a sandbox. The page is trusted.
const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args });
for (const [width, scheme] of [[360, "light"], [360, "dark"], [1280, "light"], [1280, "dark"]]) {
    const note = problem => problems.add(`${width} px, ${scheme}: ${problem}`);
    const page = await browser.newPage();
    page.on("console", message => ["error", "warn"].includes(message.type()) && note(`console: ${message.text()}`));
    page.on("pageerror", error => note(`error: ${error.message}`));
    const isOwn = url => url.startsWith(origin) || url.startsWith("data:");
    page.on("request", request => isOwn(request.url()) || note(`request: ${request.url()}`));
    await page.setViewport({ width, height: 900, isMobile: width < 800 });
    // Without motion, an insertion is shown at once, and nothing waits.
    const features = { "prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce" };
    await page.emulateMediaFeatures(Object.entries(features).map(([name, value]) => ({ name, value })));
    await page.goto(`${origin}/demo/index.html`);
    await page.waitForSelector("#answer strong");
    const answer = () => page.$eval("#answer", element => element.textContent);
    const matches = () => page.$$eval("svg rect.match", all => all.length);
    const check = async name => {
        (await page.evaluate(look)).forEach(problem => note(`${name}: ${problem}`));
        await page.screenshot({ path: join(pictures, `${name}-${width}-${scheme}.png`), fullPage: true });
    };
    const type = async word => {
        await page.$eval("#item", input => (input.focus(), input.select()));
        await page.keyboard.type(word);
    };
    await type("zebra");
    expect((await answer()).includes("“zebra” is probably in the filter") && (await matches()) >= 1, "fixed: zebra is not found");
    const hashes = await page.evaluate(async () => {
        const { open } = await import("../koel.js");
        const filter = await open(new URL("words.koel", location));
        return [filter.hash("zebra").toString(16).padStart(16, "0"), document.querySelector("svg text.hash").textContent];
    });
    expect(hashes[0] === hashes[1], `the hash is ${hashes[0]}, and the page shows ${hashes[1]}`);
    // The line to the other bucket begins at the first bucket, and another one at the fingerprint leads to it.
    const starts = (kind, place) => page.$$eval(`svg ${kind}`, (all, place) => all.map(one => parseFloat(place === "d"
        ? one.getAttribute("d").slice(1)
        : Number(one.getAttribute("x")) + Number(one.getAttribute("width")) / 2)), place);
    const [marks, leads, chips] = [await starts("path.at", "d"), await starts("path.lead", "d"), await starts("rect.mark", "x")];
    const order = await page.$$eval("svg .bucket", all => all.map(one => one.textContent.slice(0, 5)));
    expect(leads.length === 2 && leads[0] === marks[order.indexOf("first")] && leads[1] === chips[0], `lines: ${leads}`);
    await check("present");
    await type("zebrq");
    expect((await answer()).includes("“zebrq” is not in the filter") && (await matches()) === 0, "fixed: zebrq is found");
    await check("absent");
    const texts = () => page.$$eval("#reads, #none", all => all.map(one => one.textContent).join("; "));
    expect((await texts()) === "two buckets; neither bucket has it", `fixed: ${await texts()}`);
    await page.click("#chance");
    expect(/“cuckoo-\d+” is probably in the filter.*false positive/.test(await answer()), `no false positive: ${await answer()}`);
    expect((await matches()) >= 1, "the false positive is not shown");
    await check("false-positive");
    await type("long".repeat(40));
    await check("long");

    const dropped = async (name, bytes) => {
        await page.evaluate((name, base64) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([Uint8Array.from(atob(base64), letter => letter.charCodeAt(0))], name));
            document.getElementById("drop").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
        }, name, bytes.toString("base64"));
        await page.waitForFunction(name => document.querySelector("main").textContent.includes(name), {}, name);
    };
    await dropped("growing.koel", readFileSync(growing));
    await type("zebra");
    expect((await answer()).includes("“zebra” is probably") && (await matches()) >= 1, "growing: zebra is not found");
    await check("growing");
    const corrupt = readFileSync(growing);
    corrupt[corrupt.length >> 1] ^= 1;
    await dropped("corrupt.koel", corrupt);
    const error = await page.$eval("#error", element => element.textContent);
    expect(/corrupt\.koel: .*was altered.*\(BodyChecksum\)/.test(error), `corrupt: ${error}`);
    expect((await answer()).includes("“zebra” is probably"), "corrupt: the filter before it is gone");
    await check("corrupt");

    await dropped("beyond.koel", readFileSync(beyond));
    await type("zebra");
    const four = "four buckets, two in each of two generations; none of the four buckets has it";
    expect((await texts()) === four, `beyond its plan: ${await texts()}`);
    expect((await page.$$("svg .bucket")).length === 4, "beyond its plan, there are not four buckets");
    await check("beyond");

    await dropped("numbers.koel", readFileSync(numbers));
    await type("92");
    expect((await answer()).includes("The number 92 is probably") && (await matches()) >= 1, "numbers: 92 is not found");
    await type("93");
    expect((await answer()).includes("“93” is not in the filter"), "numbers: 93 is found");

    // By keyboard: the next stops after the word are the button and the file, and the file's dialog gives a filter, too.
    await page.focus("#item");
    for (const stop of ["chance", "file"]) {
        await page.keyboard.press("Tab");
        expect(await page.$(`#${stop}:focus`), `Tab does not lead to #${stop}`);
    }
    const chosen = join(pictures, "chosen.koel");
    writeFileSync(chosen, readFileSync(join(process.env.WEB, "demo/words.koel")));
    await (await page.$("#file")).uploadFile(chosen);
    await page.waitForFunction(() => document.getElementById("facts").textContent.includes("chosen.koel"));
    expect((await page.$eval("#error", element => element.textContent)) === "", "the error stays");

    // The first word to insert moves others. Its steps can be seen again.
    const slots = () => page.$$eval("#table .slot", all => all.map(one => one.textContent));
    const taken = async () => (await slots()).filter(text => text !== "empty").length;
    const before = await slots();
    await page.click("#insertion button");
    const outcome = () => page.$eval("#outcome", element => element.textContent);
    expect(/“cuckoo” is inserted.*had to move/.test(await outcome()), `insertion: ${await outcome()}`);
    expect((await taken()) === before.filter(text => text !== "empty").length + 1, "the insertion does not take one slot");
    await check("insertion");
    const steps = await page.$$("#steps button");
    expect(steps.length >= 3, `insertion: ${steps.length} steps`);
    await steps[0]?.click();
    expect(String(await slots()) === String(before), "the first step is not the table before the insertion");
    // Until the table refuses one.
    for (let n = 0; n < 16 && !/finds no room/.test(await outcome()); n += 1) await page.click("#insertion button");
    expect(/finds no room/.test(await outcome()), `the table is full: ${await outcome()}`);
    await check("refusal");
    await page.click("#again");
    expect(String(await slots()) === String(before), "the table does not start again");
    await page.close();
}
await browser.close();
server.close();
problems.forEach(problem => console.error(problem));
console.log(`demo: ${problems.size} problems`);
if (problems.size > 0) process.exitCode = 1;
