// Opens the reports of result folders in Chromium, narrow and wide, light and dark. Prints all problems and saves pictures.
//     node check.mjs PICTURES FOLDER...

import { readFileSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

// Returns what the page must show of each record in the folder.
function expected(folder) {
    return readdirSync(folder).filter(name => name.endsWith(".json")).map(file => {
        const { pictures, measured } = JSON.parse(readFileSync(join(folder, file), "utf8"));
        const rows = measured.reduce((sum, { rows }) => sum + rows.length, 0);
        return { name: basename(file, ".json"), titles: pictures.map(({ title }) => title), rows };
    });
}

// Returns the problems of the page as it is shown. Runs in the browser, so it uses nothing from outside.
function look(scheme, records) {
    const problems = [];
    const expect = (holds, problem) => holds || problems.push(problem);

    // Contrast as WCAG 2 defines it.
    const luminance = color => {
        const parts = (color.match(/[\d.]+/g) ?? []).slice(0, 3).map(part => part / 255);
        const [r, g, b] = parts.map(part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const isOpaque = color => color.startsWith("rgb(");
    const background = at => {
        const color = getComputedStyle(at).backgroundColor;
        return isOpaque(color) || at === document.body ? color : background(at.parentElement);
    };
    const contrast = (element, paint) => {
        const style = getComputedStyle(element);
        const [darker, lighter] = [style[paint], background(element)].map(luminance).sort((one, other) => one - other);
        return isOpaque(style[paint]) && style.opacity === "1" ? (lighter + 0.05) / (darker + 0.05) : 1;
    };

    const excess = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    expect(excess <= 0, `the page is ${excess} px too wide`);
    expect(luminance(background(document.body)) > 0.5 === (scheme === "light"), "the background is that of the other scheme");

    const isText = element => [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    for (const element of [...document.querySelectorAll("body :not(title, desc, style, script)")].filter(isText)) {
        const [text, style, svg] = [element.textContent.trim().slice(0, 60), getComputedStyle(element), element.closest("svg")];
        const seen = contrast(element, svg ? "fill" : "color");
        expect(seen >= 4.5, `contrast ${seen.toFixed(2)} of the text: ${text}`);
        const size = parseFloat(style.fontSize) * (svg?.getScreenCTM().a ?? 1);
        expect(size >= 9, `letters of ${size.toFixed(1)} px: ${text}`);
        const isCut = style.overflowX === "hidden" && element.scrollWidth > element.clientWidth;
        expect(element.getClientRects().length > 0 && !isCut, `hidden or cut off: ${text}`);
    }

    for (const svg of document.querySelectorAll("figure svg")) {
        const chart = `${svg.closest("section")?.id}, ${svg.getAttribute("aria-label")}`;
        // Grid lines are pale on purpose, and text may cross them.
        const marks = [...svg.querySelectorAll('circle, rect, polygon, polyline, line:not([stroke="#D9D9DE"])')];
        for (const mark of marks) {
            const seen = contrast(mark, "stroke");
            expect(seen >= 3, `${chart}: contrast ${seen.toFixed(2)} of a ${mark.tagName} ${mark.getAttribute("stroke")}`);
        }
        // The box of a slope or of a ring is mostly empty, so marks are compared by points along them.
        const along = mark => {
            const points = Array.from({ length: mark.getTotalLength() / 2 + 1 }, (_, step) => mark.getPointAtLength(2 * step));
            return points.map(point => point.matrixTransform(mark.getScreenCTM())).map(({ x, y }) => new DOMRect(x, y, 0, 0));
        };
        const others = marks.flatMap(mark => along(mark).map(box => [mark.tagName, box]));
        const frame = svg.getBoundingClientRect();
        const texts = svg.querySelectorAll("text");
        expect(texts.length > 3, `${chart}: ${texts.length} texts`);
        for (const element of texts) {
            const [text, box] = [element.textContent, element.getBoundingClientRect()];
            const isWithin = box.left >= frame.left && box.right <= frame.right;
            expect(isWithin && box.top >= frame.top && box.bottom <= frame.bottom, `${chart}: cut off: ${text}`);
            for (const [other, { left, right, top, bottom }] of others) {
                // Boxes of text are at least 2 px larger than its letters.
                const meets = left < box.right - 2 && right > box.left + 2 && top < box.bottom - 2 && bottom > box.top + 2;
                expect(!meets, `${chart}: overlap: ${text} / ${other}`);
            }
            others.push([text, box]);
        }
    }

    for (const charts of document.querySelectorAll(".charts")) {
        const [first, second] = [...charts.children].map(chart => chart.getBoundingClientRect().top);
        const isRight = second === undefined || (first === second) === (innerWidth > 1000);
        expect(isRight, `${charts.closest("section")?.id}: charts ${first === second ? "side by side" : "below each other"}`);
    }

    for (const { name, titles, rows } of records) {
        const charts = [...document.querySelectorAll(`#${name} svg[role=img]`)].map(svg => svg.getAttribute("aria-label"));
        expect(`${charts}` === `${titles}`, `${name}: the charts are "${charts}", and not "${titles}"`);
        const table = document.querySelector(`#${name} a[download="${name}.csv"]`)?.getAttribute("href").split("base64,")[1];
        const lines = atob(table ?? "").split("\n").length - 1;
        expect(lines > rows, `${name}.csv: ${lines} lines, and not ${rows} rows and a header`);
    }
    return [...new Set(problems)];
}

// Returns true if a link has led to the section and its heading is in view.
function isShown(page, name) {
    return page.evaluate(async name => {
        // The page has scrolled when the next picture is drawn.
        await new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)));
        const heading = document.querySelector(":target h2")?.getBoundingClientRect();
        return location.hash === `#${name}` && heading?.top >= 0 && heading.bottom <= innerHeight;
    }, name);
}

const [pictures, ...folders] = process.argv.slice(2).map(path => resolve(path));
// Chromium does not run as root in a sandbox. The page is trusted.
const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args });
for (const folder of folders) {
    const [report, records, url] = [basename(folder), expected(folder), pathToFileURL(join(folder, "report.html")).href];
    const problems = new Set();
    const expect = (holds, problem) => holds || problems.add(problem);
    const page = await browser.newPage();
    page.on("console", message => expect(!["error", "warn"].includes(message.type()), `console: ${message.text()}`));
    page.on("pageerror", error => expect(false, `error: ${error.message}`));
    page.on("request", request => expect(request.url() === url, `request: ${request.url().slice(0, 100)}`));
    for (const width of [360, 1280]) {
        await page.setViewport({ width, height: 800, isMobile: width < 800 });
        for (const { name } of records) {
            const link = `nav a[href="#${name}"]`;
            await page.goto(url);
            await page.click(link).catch(() => {});
            expect(await isShown(page, name), `${width} px: ${name}: not shown by a click in the contents`);
            await page.goto(url);
            for (let n = 0; n < records.length && !(await page.$(`${link}:focus`)); n += 1) await page.keyboard.press("Tab");
            await page.keyboard.press("Enter");
            expect(await isShown(page, name), `${width} px: ${name}: not shown by Tab and Enter in the contents`);
        }
        await page.goto(url);
        // The widest font in common use: text that fits in it fits in others.
        await page.addStyleTag({ content: 'svg text { font-family: "DejaVu Sans", Verdana, sans-serif }' });
        for (const scheme of ["light", "dark"]) {
            await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
            const seen = await page.evaluate(look, scheme, records);
            seen.forEach(problem => expect(false, `${width} px, ${scheme}: ${problem}`));
            await page.screenshot({ path: join(pictures, `${report}-${width}-${scheme}.png`), fullPage: true });
        }
    }
    await page.close();
    problems.forEach(problem => console.error(`${report}: ${problem}`));
    console.log(`${report}: ${records.length} sections, ${problems.size} problems`);
    if (problems.size > 0) process.exitCode = 1;
}
await browser.close();
