"""What is said of rows: the roles of columns, and the queries that rows belong to."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.channels.rows.categories import (
        Categories as Categories,
        Coding as Coding,
        check_some as check_some,
        coded_features as coded_features,
        described as described,
        distinct as distinct,
        framed as framed,
        integer_codes as integer_codes,
        is_text as is_text,
        may_be_categories as may_be_categories,
        named_columns as named_columns,
        unframed as unframed,
        unseen as unseen,
    )
    from trainers.channels.rows.preparation import (
        DATE as DATE,
        INDEX_NAMES as INDEX_NAMES,
        TRUTH as TRUTH,
        ZONED as ZONED,
        Preparation as Preparation,
        Problems as Problems,
        arrow_of as arrow_of,
        checked_missing as checked_missing,
        classes_of as classes_of,
        column_numbers as column_numbers,
        first_text as first_text,
        gathered_roles as gathered_roles,
        holds_text as holds_text,
        identifies as identifies,
        is_date as is_date,
        is_identifier_name as is_identifier_name,
        is_number_type as is_number_type,
        kind_of_text as kind_of_text,
        text_of as text_of,
        text_problem as text_problem,
        unseen_label as unseen_label,
        with_days as with_days,
    )
    from trainers.channels.rows.queries import Queries as Queries
    from trainers.channels.rows.roles import (
        BASE_MARGIN as BASE_MARGIN,
        LOWER as LOWER,
        QID as QID,
        ROLES as ROLES,
        UPPER as UPPER,
        WEIGHT as WEIGHT,
        Roles as Roles,
        Said as Said,
        as_said as as_said,
        check_said as check_said,
        checked_roles as checked_roles,
        has_names as has_names,
        place_of as place_of,
    )

load_when_used(__name__)
