"""Arguments of a program: how hyperparameters are written on its command line, in variables or in a file."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.script.arguments.forms import (
        LISTS as LISTS,
        STYLES as STYLES,
        Arguments as Arguments,
        check_names as check_names,
    )
    from trainers.script.arguments.texts import file_text as file_text, override_text as override_text
    from trainers.script.arguments.writing import (
        Given as Given,
        arguments_of as arguments_of,
        check_arguments as check_arguments,
        given_of as given_of,
    )

load_when_used(__name__)
