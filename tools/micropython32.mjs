// Runs Python code in a 32-bit MicroPython, request by request. micropython32.py starts it, as
// `node micropython32.mjs PACKAGE`, and says what it is for.
//
// A request is a line of JSON: {"files": [[host path, path inside], ...], "steps": [code, ...]}.
// The answer is lines of JSON: {"out": text} for each line that the code prints, and at the end
// {"error": traceback, or null when all steps ran}. Each request has an interpreter of its own.

import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const HEAP_BYTES = 4 << 20; // it grows on demand
const STACK_BYTES = 16 << 10; // for the frames of Python functions

const { loadMicroPython } = await import(
  pathToFileURL(path.join(process.argv[2], "micropython.mjs"))
);

function say(answer) {
  fs.writeSync(1, JSON.stringify(answer) + "\n");
}

function copy(files, source, target) {
  if (!fs.statSync(source).isDirectory()) {
    files.mkdirTree(path.posix.dirname(target));
    files.writeFile(target, fs.readFileSync(source));
    return;
  }
  for (const name of fs.readdirSync(source)) {
    if (name !== "__pycache__") {
      copy(files, path.join(source, name), path.posix.join(target, name));
    }
  }
}

async function answer({ files, steps }) {
  const stdout = (out) => say({ out });
  const python = await loadMicroPython({
    heapsize: HEAP_BYTES,
    pystack: STACK_BYTES,
    stdout,
    stderr: stdout,
  });
  for (const [source, target] of files) copy(python.FS, source, target);
  for (const step of steps) python.runPython(step);
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  let error = null;
  try {
    await answer(JSON.parse(line));
  } catch (failure) {
    error = String(failure.message || failure);
  }
  say({ error });
}
