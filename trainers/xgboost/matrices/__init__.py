"""XGBoost's matrices of a worker's rows, in memory and on disk."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.xgboost.matrices.categories import (
        as_model_knows as as_model_knows,
        check_categories as check_categories,
        check_method as check_method,
        codes_known as codes_known,
        has_categories as has_categories,
    )
    from trainers.xgboost.matrices.cuts import (
        Counter as Counter,
        Cuts as Cuts,
        Merge as Merge,
        cut_columns as cut_columns,
        within as within,
    )
    from trainers.xgboost.matrices.external import (
        check_channel as check_channel,
        check_external as check_external,
        check_on_disk as check_on_disk,
    )
    from trainers.xgboost.matrices.making import (
        KEPT as KEPT,
        PLAIN as PLAIN,
        Kind as Kind,
        kind_of as kind_of,
        matrix as matrix,
    )
    from trainers.xgboost.matrices.references import made_apart as made_apart, reference as reference
    from trainers.xgboost.matrices.spooled import (
        BLOCK_BYTES as BLOCK_BYTES,
        SCORED_BYTES as SCORED_BYTES,
        Spooled as Spooled,
        as_arguments as as_arguments,
        numbers_of as numbers_of,
    )

load_when_used(__name__)
