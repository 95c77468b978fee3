"""Numbers of docs/papers.md that a run measures, between comment marks.

    streamgauge reproduce hessler darwin realvideo windows-media ccn --mode sim --json > claims.json
    streamgauge reproduce hessler --mode sim --json > hessler.json
    python scripts/paper-figures.py claims.json hessler.json

stores the page's data of a run in docs/measured/papers.json and writes it there. Without files the page is
written again from the stored data. The model is that of the package that runs the script, or `--model`.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from streamgauge._native import MODEL_VERSION

DOCS = Path(__file__).parent.parent / "docs"
STORED = DOCS / "measured" / "papers.json"
PAGE = DOCS / "papers.md"
CLASSES = ("no", "little", "medium", "heavy", "burst")
SYSTEMS = {
    "ftp": "the download",
    "real": "RealPlayer",
    "wmp": "Windows Media Player",
    "qt": "QuickTime",
}
_MARKED = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def kept_of_claims(told: dict[str, Any]) -> dict[str, Any]:
    """Returns the stored part of ``streamgauge.papers/1``."""
    kept = ("paper", "claims", "default", "readings", "beside", "checks", "predicted")
    return {
        "answer": told["answer"],
        "papers": [{key: one[key] for key in kept} for one in told["papers"]],
        "held_out": {one["id"]: one["held_out"] for one in told["claims"] if one["held_out"] is not None},
        "trials": told["trials"],
    }


def kept_of_hessler(told: dict[str, Any]) -> dict[str, Any]:
    """Returns the loss of each scenario of Table 2, in percent: published, and by reading."""
    found: dict[str, Any] = {}
    for table in told["tables"]:
        for line in table["lines"]:
            mine = {"paper": round(line["published"]["loss_percent"], 2)}
            for one in line["measured"]:
                if one["mode"] == "sim":
                    mine[one["reading"] or "sources"] = round(one["loss_percent"]["mean"], 2)
            found[line["scenario"]] = mine
    return found


def claims(stored: dict[str, Any]) -> str:
    """Returns a row a paper and reading."""
    rows = [
        "| paper | reading | of | as claimed | differ in size | differ | undecided |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in stored["claims"]["papers"]:
        for name, counts in one["readings"].items():
            cells = [counts[key] for key in ("pass", "differs in size", "differs", "inconclusive")]
            called = f"**{name}**" if name == one["default"] else name
            rows.append(
                f"| {one['paper']} | {called} | {one['claims']} | " + " | ".join(map(str, cells)) + " |"
            )
    held_out = stored["claims"]["held_out"]
    holds = sum(verdict == "pass" for verdict in held_out.values())
    run = stored["claims"]
    said = f"Simulated with model {stored['model']}, {run['trials']} trials. {run['answer']}"
    if held_out:
        said += f" {holds} of {len(held_out)} claims pass under a fit that did not see them."
    return "\n".join([said, "", *rows])


def loss(stored: dict[str, Any]) -> str:
    """Table 2's loss: the paper beside each reading."""
    first = next(iter(stored["hessler"].values()))
    rows = ["| loss, % | | " + " | ".join(CLASSES) + " |", "|---|---|" + "---|" * len(CLASSES)]
    for system, called in SYSTEMS.items():
        for at, origin in enumerate(first):
            cells = [f"{stored['hessler'][f'hessler/{system}-{name}'][origin]:.3g}" for name in CLASSES]
            rows.append(f"| {called if at == 0 else ''} | {origin} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


BLOCKS = {"claims": claims, "loss": loss}


def filled(page: str, stored: dict[str, Any]) -> str:
    """Returns the page with the stored data between its marks."""
    return _MARKED.sub(lambda found: f"{found[1]}{BLOCKS[found[2]](stored)}\n{found[3]}", page)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("claims", nargs="?", type=Path, help="what reproduce of all papers printed")
    parser.add_argument("hessler", nargs="?", type=Path, help="what reproduce of hessler printed")
    parser.add_argument("--model", type=int, default=MODEL_VERSION, help="the model that measured it")
    options = parser.parse_args()
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    if options.claims:
        stored["model"] = options.model
        stored["claims"] = kept_of_claims(json.loads(options.claims.read_text(encoding="utf-8")))
    if options.hessler:
        stored["hessler"] = kept_of_hessler(json.loads(options.hessler.read_text(encoding="utf-8")))
    STORED.parent.mkdir(exist_ok=True)
    STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), stored), encoding="utf-8")


if __name__ == "__main__":
    main()
