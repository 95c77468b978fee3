"""Any text is an expression or an error; an expression is written and read again as the same."""

from __future__ import annotations

from streamgauge.claims.expression import ExpressionError, parse, parse_value


def target(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for read in (parse, parse_value):
        try:
            made = read(text)
        except ExpressionError:
            continue
        assert str(read(str(made))) == str(made)
