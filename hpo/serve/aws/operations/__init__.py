"""Operations of the service on jobs of the record."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.serve.aws.operations.caller import Caller as Caller
    from hpo.serve.aws.operations.table import OPERATIONS as OPERATIONS, Operation as Operation

load_when_used(__name__)
