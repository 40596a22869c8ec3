"""What pages lead to is there, and what their pictures show is nobody's own."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in (".", "docs", "examples")
    for path in (ROOT / folder).glob("*.md" if folder == "." else "**/*.md")
)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)[^)]*\)")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
SHOWN = {
    "mistake.svg": "did you mean 'stories'?",
    "run.svg": "attempt 2 (1 lost)",
    "why.svg": 'live workers serve "verifier"',
}
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


def test_every_link_of_a_page_leads_somewhere() -> None:
    broken = [
        f"{page}: {link}"
        for page in PAGES
        for link in LINK.findall(FENCED.sub("", (ROOT / page).read_text(encoding="utf-8")))
        if not ((ROOT / page).parent / link).exists()
    ]
    assert broken == [], "\n".join(broken)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_shown_and_holds_no_path_and_no_font_from_elsewhere(picture: Path) -> None:
    drawn = picture.read_text(encoding="utf-8")
    text = re.sub(r"<[^>]*>", "", drawn).replace("&#160;", " ")
    assert "$ holdfast " in text
    assert SHOWN[picture.name] in unescape(text)
    assert re.findall(r"(?:^|\s)/\w|@font-face|url\((?!#)", drawn.replace("/>", ">")) == []
    assert f"docs/pictures/{picture.name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_index_of_decisions_names_each_of_them_by_its_title() -> None:
    folder = ROOT / "docs" / "adr"
    pages = [page for page in sorted(folder.glob("0*.md")) if page.name != "0000-template.md"]
    first_lines = [page.read_text(encoding="utf-8").split("\n", 1)[0] for page in pages]
    titles = {line.split(". ", 1)[1] for line in first_lines}
    index = (folder / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^- \[\d+\. (.+)\]\((0\S+)\)$", index, re.MULTILINE)
    assert {title for title, _ in named} == titles
    assert sorted(link for _, link in named) == [page.name for page in pages]
