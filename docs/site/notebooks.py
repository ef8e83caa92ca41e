"""Notebooks as pages of the site: a hook of MkDocs, which turns each with its stored outputs into Markdown."""

from __future__ import annotations

import posixpath
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter


class Notebook(File):
    """A notebook, converted: a page under its own name, so that links to the `.ipynb` lead to it."""

    def is_documentation_page(self) -> bool:
        """It is rendered, not copied."""
        return True


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Puts a page, and its pictures, in the place of each notebook."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        pictures = posixpath.basename(file.src_uri).removesuffix(".ipynb") + "_files"
        page, resources = MarkdownExporter().from_filename(file.abs_src_path, {"output_files_dir": pictures})
        files.remove(file)
        files.append(Notebook.generated(config, file.src_uri, content=in_our_style(page)))
        for name, content in resources["outputs"].items():
            place = posixpath.join(posixpath.dirname(file.src_uri), name)
            files.append(File.generated(config, place, content=content))
    return files


def in_our_style(page: str) -> str:
    """Tables of pandas without a style of their own, so that they look, and scroll, as others do."""
    page = re.sub(r"<style scoped>.*?</style>\n", "", page, flags=re.DOTALL)
    page = page.replace('<table border="1" class="dataframe">', "<table>")
    return page.replace("![png]", "![What the code above draws]")
