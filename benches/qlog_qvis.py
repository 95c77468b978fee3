"""qvis' own loader on a qlog of ours: each event that it reads, by name, with the times that it gives them.

python benches/qlog_qvis.py QVIS FILE [FILE ...]

QVIS is a checkout of github.com/quiclog/qvis, or its folder `visualizations/src`; none of its code ships
here. Needs node and npm, which fetches esbuild, oboe and vue. Files load as they do in qvis' page: the kind
by the name and the first bytes, then its converter of text sequences, its loader, its parser of events. The
package of types for draft 01 is no longer published: an empty module stands in.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

PACKAGES: Final = ("esbuild", "oboe@2", "vue@2.6")
TYPES: Final = "@quictools/qlog-schema/draft-01/QLog"
LOAD: Final = """\
import FileLoader from '@/components/filemanager/data/FileLoader';
import { QlogLoader } from '@/data/QlogLoader';
import { QlogLoaderV2 } from '@/data/QlogLoaderV2';
import * as fs from 'fs';

const print = console.log;
let errors: string[] = [];
console.log = () => {};
console.error = (...words: any[]) => { errors.push(words.map(String).join(' ').slice(0, 200)); };
(async () => {
  for (const file of process.argv.slice(2)) {
    errors = [];
    const { qlogJSON } = await FileLoader.Load(fs.readFileSync(file, 'utf8'), file);
    const group: any = QlogLoader.fromJSON(qlogJSON) || QlogLoaderV2.fromJSON(qlogJSON);
    const events: any = {};
    for (const connection of group.getConnections()) {
      for (const event of connection.getEvents()) {
        const parsed = connection.parseEvent(event);
        const name = `${parsed.category}:${parsed.name}`;
        const one = events[name] ??= { count: 0, first_ms: null, last_ms: null };
        one.count += 1;
        one.first_ms ??= parsed.relativeTime;
        one.last_ms = parsed.relativeTime;
      }
    }
    print(JSON.stringify({ file, version: group.version, format: group.format, events, errors }));
  }
})();
"""


def loaded(qvis: Path, files: list[Path]) -> list[dict[str, Any]]:
    """Returns the events of each file by name, as the loader reads them, with its version and errors."""
    source = qvis if (qvis / "data" / "QlogLoaderV2.ts").exists() else qvis / "visualizations" / "src"
    if not (source / "data" / "QlogLoaderV2.ts").exists():
        raise SystemExit(f"{qvis}: no checkout of qvis: data/QlogLoaderV2.ts is not there")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "package.json").write_text("{}")
        (folder / "load.ts").write_text(LOAD)
        (folder / "none.ts").write_text("export {};\n")
        install = ["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES]
        subprocess.run(install, cwd=folder, check=True)
        bundle = ["node_modules/.bin/esbuild", "load.ts", "--bundle", "--platform=node", "--outfile=load.js"]
        names = [f"--alias:{TYPES}={folder}/none.ts", f"--alias:@={source.resolve()}", "--log-level=error"]
        there = {"NODE_PATH": str(folder / "node_modules")}
        subprocess.run([*bundle, *names], cwd=folder, check=True, env=os.environ | there)
        run = ["node", str(folder / "load.js"), *(str(file.resolve()) for file in files)]
        found = subprocess.run(run, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in found.stdout.splitlines()]


def main() -> int:
    """Prints a line for each kind of event; 1 if the loader reports an error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("qvis", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    given = parser.parse_args()
    failed = False
    for one in loaded(given.qvis, given.files):
        print(f"{one['file']}: qlog {one['version']}, {one['format']}")
        for name, events in one["events"].items():
            print(f"  {name}: {events['count']} events, {events['first_ms']} to {events['last_ms']} ms")
        for error in one["errors"]:
            print(f"  error: {error}")
        failed |= bool(one["errors"])
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
