"""Calls a function of the user's for a player that is no Python: function_caller.py FILE.py:NAME

It reads lines of JSON and answers some of them, as crates/engine/PROTOCOL.md describes.
"""

import json
import os
import runpy
import sys
from types import SimpleNamespace
from typing import Any


def main(name: str) -> None:
    # Lines are the player's; a rule that prints does so where logs are kept.
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)

    def answer(**words: Any) -> None:
        answers.write(json.dumps(words) + "\n")

    try:
        file, _, wanted = name.rpartition(":")
        function = runpy.run_path(file)[wanted]
        if isinstance(function, type):
            function = function()
    except Exception as error:
        answer(error=f"{type(error).__name__}: {error}")
        return
    answer(ready=True)
    fetched: list[SimpleNamespace] = []
    for line in sys.stdin:
        words = json.loads(line)
        if "fetched" in words:
            fetched.append(SimpleNamespace(**words["fetched"]))
            continue
        try:
            chosen = function(SimpleNamespace(**words["situation"], fetched=fetched))
            level, why = chosen if isinstance(chosen, tuple) else (chosen, "the function's choice")
            answer(level=int(level), why=str(why))
        except Exception as error:
            answer(error=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1])
