# SPDX-License-Identifier: Apache-2.0
"""The commands of a page of docs/deploy, to be run as they stand there."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(page):
    """Text of every block of commands of docs/deploy/PAGE.md, in order: those of no language."""
    text = (ROOT / "docs/deploy" / f"{page}.md").read_text()
    return [text for language, text in re.findall(r"^```(.*?)\n(.*?)^```$", text, re.M | re.S) if not language]


def block(page, word):
    """The only block with `word` in it."""
    found = [text for text in blocks(page) if word in text]
    assert len(found) == 1, f"{len(found)} blocks of {page}.md have '{word}'"
    return found[0]


def replaced(text, changes):
    """`text` with a machine's own names for those of the page, all of which it has."""
    for old, new in changes.items():
        assert old in text, f"'{old}' is not in the page"
        text = text.replace(old, new)
    return text
