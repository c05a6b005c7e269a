// The package, as `npm pack` makes it, in Node, in a worker, in a bundle, in TypeScript and in Deno.
// TOOLS is a folder in which tests/package.json is installed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const [WEB, GOLDEN] = ["..", "../../tests/data/packed_f13_any.koel"].map(path => fileURLToPath(new URL(path, import.meta.url)));
const folder = mkdtempSync(join(tmpdir(), "koel-web-"));
after(() => rmSync(folder, { recursive: true }));
const installed = join(folder, "node_modules/koel-filter");

const run = (program, ...args) => execFileSync(program, args, { cwd: folder, encoding: "utf8" }).trim();
const write = (name, text) => writeFileSync(join(folder, name), text);
const LOOKUP = 'new Uint8Array(await readFile(process.argv[2]))); console.log(filter.has("item-92"), filter.has("item-93"));';
const BEGIN = 'import { readFile } from "node:fs/promises"; import { load, open } from "koel-filter";';

const pack = ["pack", "--json", "--silent", "--pack-destination", folder];
const [packed] = JSON.parse(execFileSync("npm", pack, { cwd: WEB, encoding: "utf8" }));
mkdirSync(installed, { recursive: true });
run("tar", "-xzf", packed.filename, "-C", installed, "--strip-components=1");

test("the package has what it needs, and nothing else", () => {
    const files = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "koel.d.ts", "koel.js", "koel.wasm", "messages.js", "package.json"];
    assert.deepEqual(packed.files.map(({ path }) => path).sort(), files);
});

test("Node and its workers load the package", () => {
    write("main.mjs", `${BEGIN} const filter = await open(${LOOKUP}`);
    assert.equal(run("node", "main.mjs", GOLDEN), "true false");
    write("worker.mjs", `import { parentPort, workerData } from "node:worker_threads"; import { open } from "koel-filter";
        const filter = await open(workerData.bytes, { wasm: workerData.wasm });
        parentPort.postMessage([...filter.hasBatch(["item-92", "item-93"])]);`);
    write("workers.mjs", `${BEGIN} import { Worker } from "node:worker_threads";
        const workerData = { bytes: new Uint8Array(await readFile(process.argv[2])), wasm: await load() };
        const answers = [1, 2].map(() => new Promise((resolve, reject) =>
            new Worker("./worker.mjs", { workerData }).on("message", resolve).on("error", reject)));
        console.log(String(await Promise.all(answers)));`);
    assert.equal(run("node", "workers.mjs", GOLDEN), "1,0,1,0");
});

const noTools = process.env.TOOLS === undefined && "run `just web`, or set TOOLS to a folder in which tests/package.json is installed";
test("a bundle finds the module beside it, or has it inside", { skip: noTools }, async () => {
    const { build } = createRequire(join(process.env.TOOLS, "package.json"))("esbuild");
    const target = { format: "esm", target: "node20", external: ["node:*"] };
    const options = { ...target, absWorkingDir: folder, bundle: true, logLevel: "warning" };
    await build({ ...options, entryPoints: ["main.mjs"], outfile: "beside/main.mjs" });
    copyFileSync(join(installed, "koel.wasm"), join(folder, "beside/koel.wasm"));
    assert.equal(run("node", "beside/main.mjs", GOLDEN), "true false");
    write("inside.mjs", `${BEGIN} import wasm from "koel-filter/koel.wasm"; await load(wasm); const filter = await open(${LOOKUP}`);
    await build({ ...options, entryPoints: ["inside.mjs"], outfile: "inside/main.mjs", loader: { ".wasm": "binary" } });
    assert.equal(run("node", "inside/main.mjs", GOLDEN), "true false");
});

test("TypeScript knows the package", { skip: noTools }, () => {
    write("types.mts", `import { load, open, KoelError, type Filter } from "koel-filter";
        async function bytes(): Promise<number> {
            using filter: Filter = await open(new Uint8Array(), { wasm: await load(), verify: false });
            const found: boolean = filter.has("a") && filter.has(7) && filter.has(7n) && filter.hasHash(filter.hash("a"));
            const all: Uint8Array = filter.hasBatch(new BigUint64Array(2));
            return found ? filter.parameters.f : all.length + filter.count("a");
        }
        bytes().catch((error: KoelError) => error.kind.length);
        // @ts-expect-error an item is no object
        (filter: Filter) => filter.has({});`);
    const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--types", ""];
    run(join(process.env.TOOLS, "node_modules/.bin/tsc"), ...options, "types.mts");
});

test("Deno loads the package", { skip: noTools }, () => {
    write("deno.mjs", `import { open } from "./node_modules/koel-filter/koel.js";
        const filter = await open(await Deno.readFile(Deno.args[0])); console.log(filter.has("item-92"), filter.has("item-93"));`);
    const deno = join(process.env.TOOLS, "node_modules/.bin/deno");
    assert.equal(run(deno, "run", "--no-config", "--allow-read", "deno.mjs", GOLDEN), "true false");
});
