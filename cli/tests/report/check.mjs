// Opens the reports of result folders in a real browser, narrow and wide, light and dark, and reports all problems.
//     node check.mjs SCREENSHOTS FOLDER...
// Then breaks the first report in all ways of breakages.mjs, and reports each breakage that the check does not notice.

import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";
import { breakages } from "./breakages.mjs";
import { rowsOf } from "./csv.mjs";
import { look } from "./look.mjs";

const WIDTHS = [360, 420, 1280];
const SCHEMES = ["light", "dark"];
// The reader's own font, and the widest one in common use.
const FONTS = ["", 'text { font-family: "DejaVu Sans", Verdana, sans-serif }'];
const LEAST_CONTRAST = 4.5;
const LEAST_SIZE = 9;

// Returns the records of a folder, which say what its report must show.
function expected(folder) {
    const names = readdirSync(folder).filter(name => name.endsWith(".json"));
    return names.map(name => ({ name: basename(name, ".json"), ...JSON.parse(readFileSync(join(folder, name), "utf8")) }));
}

// Returns all problems of the page at a width, in one color scheme.
function problems(seen, records, width) {
    const found = [];
    const expect = (holds, problem) => holds || found.push(problem);
    const same = (one, other) => JSON.stringify([...one].sort()) === JSON.stringify([...other].sort());
    const names = records.map(record => record.name);

    expect(seen.language === "en" && seen.title, "no language or no title");
    expect(seen.headings[0] === "H1" && seen.headings.filter(tag => tag === "H1").length === 1, `headings: ${seen.headings}`);
    expect(same(seen.sections, names), `sections: ${seen.sections}, and not ${names}`);
    expect(same(seen.contents, names), `contents: ${seen.contents}, and not ${names}`);
    const finding = records.filter(({ pictures }) => pictures.some(picture => picture.is_finding)).length;
    expect(seen.findings === finding, `summary: ${seen.findings} findings, and not ${finding}`);
    // The only warning allowed is that of programs without optimization, such as the tests'.
    const unoptimized = records.some(({ run }) => !run.machine.optimized);
    const promised = seen.warnings.every(warning => warning.startsWith("Not optimized.")) && seen.warnings.length === Number(unoptimized);
    expect(promised, `warnings: ${seen.warnings.join(" | ") || "none"}`);
    expect(seen.scroll <= 0, `the page scrolls sideways by ${seen.scroll} px`);

    for (const { name, pictures, tables, measured } of records) {
        const charts = seen.charts.filter(chart => chart.section === name);
        const shown = charts.map(chart => chart.label);
        expect(same(shown, pictures.map(picture => picture.title)), `${name}: charts ${JSON.stringify(shown)}`);
        const captions = charts.map(chart => chart.caption ?? "");
        expect(same(captions, pictures.map(picture => picture.caption)), `${name}: captions ${JSON.stringify(captions)}`);
        const rows = seen.tables.filter(table => table.section === name).map(table => table.rows);
        expect(same(rows, tables.map(table => table.rows.length)), `${name}: tables of ${rows} rows`);
        const link = seen.links.find(link => link.name === `${name}.csv`);
        const count = measured.reduce((sum, { rows }) => sum + rows.length, 0);
        try {
            const given = rowsOf(link?.href ?? "");
            expect(given === count, `${name}.csv: ${given} rows, and not ${count}`);
        } catch (error) {
            found.push(`${name}.csv: ${error.message}`);
        }
        // Charts stand side by side on a wide page, and below each other on a narrow one.
        const lefts = new Set(charts.map(chart => Math.round(chart.frame.left)));
        expect(charts.length < 2 || (width < 800 ? lefts.size === 1 : lefts.size > 1), `${name}: charts at x = ${[...lefts]}`);
    }
    for (const { section, label, frame, letters, clipped, cut, clashes } of seen.charts) {
        const chart = `${section}, ${label}`;
        expect(frame.right - frame.left >= 200 && frame.bottom - frame.top >= 150, `${chart}: no size`);
        expect(letters > 3, `${chart}: ${letters} texts`);
        expect(!clipped, `${chart}: its caption is clipped`);
        expect(cut.length === 0, `${chart}: cut off: ${cut.join(" | ")}`);
        expect(clashes.length === 0, `${chart}: overlap: ${clashes.join(" | ")}`);
    }
    for (const { text, contrast, size } of seen.texts) {
        expect(contrast >= LEAST_CONTRAST, `contrast ${contrast.toFixed(2)}: ${text}`);
        expect(size >= LEAST_SIZE, `letters of ${size.toFixed(1)} px: ${text}`);
    }
    return found;
}

// Opens a page in all widths, schemes and fonts, and returns all problems. Stops as soon as `enough` returns true.
async function check(browser, path, records, { fonts = FONTS, screenshots, enough = () => false }) {
    const found = new Set();
    const url = pathToFileURL(path).href;
    const page = await browser.newPage();
    page.on("console", message => ["error", "warn"].includes(message.type()) && found.add(`console: ${message.text()}`));
    page.on("pageerror", error => found.add(`error: ${error.message}`));
    page.on("request", request => request.url() !== url && found.add(`request: ${request.url().slice(0, 100)}`));
    await page.goto(url, { waitUntil: "load" });
    for (const width of enough(found) ? [] : WIDTHS) {
        await page.setViewport({ width, height: 800, isMobile: width < 800 });
        const schemes = {};
        for (const scheme of SCHEMES) {
            await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
            for (const font of fonts) {
                const style = font ? await page.addStyleTag({ content: font }) : undefined;
                const seen = await page.evaluate(look);
                await style?.evaluate(element => element.remove());
                schemes[scheme] = seen;
                problems(seen, records, width).forEach(problem => found.add(`${width} px, ${scheme}: ${problem}`));
            }
            if (screenshots) {
                await page.screenshot({ path: `${screenshots}-${width}-${scheme}.png`, fullPage: true });
            }
        }
        for (const part of ["background", "ink"]) {
            if (`${schemes.light[part]}` === `${schemes.dark[part]}`) found.add(`${part}: ${schemes.light[part]}, light and dark`);
        }
        if (enough(found)) break;
    }
    await page.close();
    return [...found];
}

const [screenshots, ...folders] = process.argv.slice(2).map(path => resolve(path));
const reports = folders.map(folder => ({ folder, path: join(folder, "report.html"), records: expected(folder) }));
const broken = join(folders[0], "broken.html");
const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM,
    // Chromium does not run as root in a sandbox. The page is trusted.
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
let failed = 0;
try {
    for (const { folder, path, records } of reports) {
        const found = await check(browser, path, records, { screenshots: join(screenshots, basename(folder)) });
        found.forEach(problem => console.error(`${basename(folder)}: ${problem}`));
        failed += found.length;
        const charts = records.reduce((sum, { pictures }) => sum + pictures.length, 0);
        const names = records.map(record => record.name).join(", ");
        console.log(`${basename(folder)}: ${names}: ${charts} charts, ${found.length} problems`);
    }

    const [{ path, records }] = reports;
    const html = readFileSync(path, "utf8");
    for (const [name, change, symptom] of failed ? [] : breakages) {
        const changed = change(html);
        writeFileSync(broken, changed);
        const enough = problems => [...problems].some(problem => symptom.test(problem));
        const found = changed === html ? [] : await check(browser, broken, records, { fonts: FONTS.slice(0, 1), enough });
        if (!enough(found)) {
            failed += 1;
            console.error(`not noticed: ${name}; instead: ${found.slice(0, 3).join("; ") || "nothing"}`);
        }
    }
    if (!failed) console.log(`all ${breakages.length} breakages are noticed`);
} finally {
    rmSync(broken, { force: true });
    await browser.close();
}
process.exit(failed ? 1 : 0);
