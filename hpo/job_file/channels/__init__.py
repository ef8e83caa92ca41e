"""The data of a job file: a dataset that has a name, or channels."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.job_file.channels.data import Data as Data, Files as Files
    from hpo.job_file.channels.examples import ExampleKeys as ExampleKeys

load_when_used(__name__)
