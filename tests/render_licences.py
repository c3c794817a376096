"""docs/licences.md, by `make rendered`: the licence of each package in `requirements.lock`, by its own metadata."""

from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata

from packaging.requirements import Requirement
from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "licences.md"
LOCKS = ("requirements.lock", "deployment.lock")
ABOUT = """# Licences of what tacit needs

tacit itself is under the Apache License 2.0. These are the packages that `requirements.lock` pins, with the licence
that each names in its own metadata. Where it names none by an identifier, its classifiers or its own words stand here.
`server` marks those that `deployment.lock` has, too: what the [image](install.md#docker) consists of. The others test
and develop tacit, or belong to an [extra](install.md#what-few-need-extras). `make rendered` writes this page.
The site that `make docs` builds holds style sheets and scripts of Furo (MIT) and of Sphinx (BSD-2-Clause).

`src/tacit/text/unicode_tables.py` and two files of `tests/golden` (`WordBreakTest.txt`,
`SentenceBreakTest.txt`) are made from the Unicode Character Database, with this notice:

> Copyright © 1991-2022 Unicode, Inc. All rights reserved. Distributed under the Terms of Use in
> https://www.unicode.org/copyright.html.
>
> Permission is hereby granted, free of charge, to any person obtaining a copy of the Unicode data files and any
> associated documentation (the "Data Files") or Unicode software and any associated documentation (the
> "Software") to deal in the Data Files or Software without restriction, including without limitation the rights
> to use, copy, modify, merge, publish, distribute, and/or sell copies of the Data Files or Software, and to
> permit persons to whom the Data Files or Software are furnished to do so, provided that either (a) this
> copyright and permission notice appear with all copies of the Data Files or Software, or (b) this copyright
> and permission notice appear in associated Documentation.
>
> THE DATA FILES AND SOFTWARE ARE PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING
> BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT OF
> THIRD PARTY RIGHTS. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR HOLDERS INCLUDED IN THIS NOTICE BE LIABLE FOR
> ANY CLAIM, OR ANY SPECIAL INDIRECT OR CONSEQUENTIAL DAMAGES, OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF
> USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR
> IN CONNECTION WITH THE USE OR PERFORMANCE OF THE DATA FILES OR SOFTWARE.
>
> Except as contained in this notice, the name of a copyright holder shall not be used in advertising or
> otherwise to promote the sale, use or other dealings in these Data Files or Software without prior written
> authorization of the copyright holder.

| package | version | licence | where |
|---|---|---|---|
"""


def pins(lock: str) -> dict[str, str]:
    """Which version of each package a lock has, by normalized names; those for this platform and others."""
    lines = (REPOSITORY / lock).read_text(encoding="utf-8").splitlines()
    asked = [Requirement(line.removesuffix("\\").strip()) for line in lines if line and not line.startswith(" ")]
    return {each.name: str(each.specifier).removeprefix("==") for each in asked}


def licence(name: str, version: str) -> str | None:
    """What a package says of its licence; None where another version of it is installed, or none."""
    try:
        found = metadata(name)
    except PackageNotFoundError:
        return None
    return _said(found) if found["Version"] == version else None


def _said(found: PackageMetadata) -> str:
    expression = found.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = [
        each.rpartition(" :: ")[2] for each in found.get_all("Classifier") or [] if each.startswith("License")
    ]
    words = (found.get("License") or "").strip().splitlines()
    return ", ".join(classifiers) or (words[0] if words else "")


def rows() -> dict[str, tuple[str, str | None, str]]:
    """By package: its version, its licence where that is installed, where it is needed."""
    server = pins("deployment.lock")
    return {
        name: (version, licence(name, version), "server" if name in server else "")
        for name, version in pins("requirements.lock").items()
    }


def rendered() -> str:
    """The page, of an environment that `make install` made."""
    return ABOUT + "".join(
        f"| {name} | {version} | {said} | {where} |\n" for name, (version, said, where) in rows().items()
    )


if __name__ == "__main__":
    missing = [name for name, (_, said, _) in rows().items() if not said]
    if missing:
        raise SystemExit(
            f"{', '.join(missing)}: not installed in the pinned version, or without a licence; make install"
        )
    PAGE.write_text(rendered(), encoding="utf-8")
