"""A job's files: its folder, copies of its inputs, its checkpoints, and their deletion."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.jobs.files import folder as folder
    from hpo.jobs.files.archives import ARCHIVES as ARCHIVES, Archives as Archives, archive_of as archive_of
    from hpo.jobs.files.checkpoints import (
        CLOSE_SECONDS as CLOSE_SECONDS,
        HURRIED_SECONDS as HURRIED_SECONDS,
        Checkpoints as Checkpoints,
    )
    from hpo.jobs.files.deletion import Files as Files, check_over as check_over, left_text as left_text
    from hpo.jobs.files.folder import (
        CLAIMED as CLAIMED,
        DRIVER_LOG as DRIVER_LOG,
        FOLDER_ID as FOLDER_ID,
        check_free as check_free,
        claim as claim,
        was_claimed as was_claimed,
    )
    from hpo.jobs.files.inputs import (
        Copying as Copying,
        check_same as check_same,
        copy_inputs as copy_inputs,
        dataset_channels as dataset_channels,
        open_inputs as open_inputs,
        record_inputs as record_inputs,
        remove_copies as remove_copies,
    )
    from hpo.jobs.files.retention import dropped as dropped

load_when_used(__name__)
