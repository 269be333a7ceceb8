"""usage: execute_notebook.py NOTEBOOK [--update]: runs its cells in the working directory and checks what they show."""
import re
import sys

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config


def shown(notebook, kind):
    """Outputs of a kind of data, over all cells."""
    return [output["data"][kind] for cell in notebook.cells for output in cell.get("outputs", [])
            if kind in output.get("data", {})]


def main():
    path, *words = sys.argv[1:]
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    # Sockets of the file system: the kernel is reached where there is no network at all.
    settings = Config({"KernelManager": {"transport": "ipc"}})
    NotebookClient(notebook, timeout=600, kernel_name="python3", config=settings,
                   resources={"metadata": {"path": "."}}).execute()
    texts = "\n".join(shown(notebook, "text/plain"))
    assert "<sheaf.Run: 16 rows, 0 rejects in out/notebook>" in texts, texts
    assert len([page for page in shown(notebook, "text/html") if "<table" in page]) == 3, "three tables are shown"
    assert len(shown(notebook, "image/png")) == 1, "a plot is shown"
    assert "out/review.html" in "".join(shown(notebook, "text/html")), "the review page is shown"
    score = re.search(r"'micro_f1'\D*([\d.]+)", texts)
    assert score and 50 < float(score[1]) <= 100, texts
    if "--update" in words:
        for cell in notebook.cells:
            cell.get("metadata", {}).pop("execution", None)  # the times of day
            for output in cell.get("outputs", []):
                if "text/plain" in output.get("data", {}):
                    output["data"]["text/plain"] = re.sub(r" at 0x\w+", "", output["data"]["text/plain"])
        notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
        nbformat.write(notebook, path)
    print(f"{len(notebook.cells)} cells, micro F1 {score[1]}")


if __name__ == "__main__":
    main()
