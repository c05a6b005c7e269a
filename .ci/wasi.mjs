// Runs a program for wasm32-wasip1 with Node: cargo's runner for the tests.
//     node --no-warnings .ci/wasi.mjs PROGRAM.wasm [ARGUMENT...]
// The program sees the current directory and nothing else of the file system.
import { readFile } from "node:fs/promises";
import { argv, cwd, env } from "node:process";
import { WASI } from "node:wasi";

const args = argv.slice(2);
const wasi = new WASI({
  version: "preview1",
  args,
  // A panic ends the program, so captured output would never be shown.
  env: { ...env, RUST_TEST_NOCAPTURE: "1" },
  preopens: { [cwd()]: cwd() },
});
const program = await WebAssembly.compile(await readFile(args[0]));
process.exitCode = wasi.start(await WebAssembly.instantiate(program, wasi.getImportObject()));
