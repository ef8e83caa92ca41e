"""Images: in folders, or as bytes in Parquet files; decoded by Pillow as they are asked for."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainers.channels.examples.located import Located, classes_of, labels_of, located
from trainers.channels.examples.parquet import Heads, InParquet, heads, place_of, read_columns
from trainers.errors import ConfigurationError, DataError
from trainers.extras import check_extra

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
"""Names of images in a folder; files of other names are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How images are looked at: resized to (height, width), and converted to a mode."""

    size: tuple[int, int] | None
    mode: str

    def decoded(self, data: bytes, name: str) -> Any:
        """An image as a uint8 tensor of (channels, height, width).

        Raises:
            DataError: it is no image, naming it.
        """
        import torch
        from PIL import Image, ImageOps

        try:
            with Image.open(io.BytesIO(data)) as opened:
                ImageOps.exif_transpose(opened, in_place=True)  # Cameras write how a photo is to be turned.
                image = _of_8_bits(opened).convert(self.mode)
        except Exception as error:  # Pillow's decoders each have their own.
            why = " ".join(str(error).split()) or type(error).__name__
            why = "it is no image" if "cannot identify image" in why else why
            raise DataError(f"{name} cannot be decoded as an image ({why}); replace it, or take it out") from None
        if self.size is not None and image.size != self.size[::-1]:
            image = image.resize(self.size[::-1], Image.Resampling.BILINEAR)
        pixels = np.asarray(image, dtype=np.uint8)
        pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
        return torch.from_numpy(np.array(pixels, order="C"))


def _of_8_bits(image: Any) -> Any:
    """An image whose channels have 8 bits: of 16, the upper ones, where Pillow would cut off all above 255.

    Raises:
        ValueError: it has numbers of another range.
    """
    from PIL import Image

    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        return Image.fromarray((np.asarray(image, np.uint16) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError(f"its pixels are {'32-bit integers' if image.mode == 'I' else 'floats'}, and not 0 to 255")
    return image


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFolder:
    """Images in a folder, or one for each class; see `Form`."""

    located: Located
    classes: tuple[str, ...]
    look: Look

    ragged: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.located.files)

    @property
    def described(self) -> dict[str, Any]:
        """See `Form`."""
        return {"columns": ["image", "label"] if self.classes else ["image"], "classes": list(self.classes) or None}

    def opened(self) -> ImageFiles:
        """See `Form`."""
        return ImageFiles(self)


class ImageFiles:
    """A dataset of `ImageFolder`."""

    def __init__(self, form: ImageFolder) -> None:
        self._form = form
        self._labels = labels_of(form.located.files, form.classes)

    def __len__(self) -> int:
        return self._form.rows

    def __getitem__(self, row: int) -> Any:
        form = self._form
        file = form.located.files[row]
        image = form.look.decoded(form.located.read(file), form.located.name(file))
        return (image, self._labels[row]) if self._labels else image


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTable(InParquet):
    """Images in a column of Parquet files; see `Form`."""

    image: str
    target: str | None
    classes: tuple[str, ...]
    look: Look

    ragged: tuple[str, ...] = ()

    @property
    def described(self) -> dict[str, Any]:
        """See `Form`."""
        columns = [self.image, *([self.target] if self.target else [])]
        return {"columns": columns, "target": self.target, "classes": list(self.classes) or None}

    def opened(self) -> ImageRows:
        """See `Form`."""
        return ImageRows(self)


class ImageRows:
    """A dataset of `ImageTable`: the images' bytes are in memory, and decoded one by one."""

    def __init__(self, form: ImageTable) -> None:
        self._form = form
        names = [form.image, *([form.target] if form.target else [])]
        columns = read_columns(form.heads, names)
        self._images = columns[form.image]
        self._labels = None if form.target is None else _numbers(form, columns[form.target])

    def __reduce__(self) -> tuple[Any, ...]:
        return ImageRows, (self._form,)

    def __len__(self) -> int:
        return self._form.rows

    def __getitem__(self, row: int) -> Any:
        form = self._form
        held = self._images[row].as_py()
        data = held["bytes"] if isinstance(held, dict) else held
        where = f"column {form.image!r} of {place_of(form.heads, row)}"
        if data is None:
            raise DataError(f"{where} holds no bytes; write the images' files into it")
        image = form.look.decoded(data, where)
        return image if self._labels is None else (image, self._labels[row])


def opened(arguments: Mapping[str, Any]) -> ImageFolder | ImageTable:
    """What `Examples.images` stands for.

    Raises:
        ConfigurationError: Pillow is missing, or columns are said of a folder.
        DataError: there are no images, or not the columns.
    """
    check_extra("Examples.images", "data", "PIL")
    paths, size = arguments["paths"], arguments["size"]
    look = Look(size=None if size is None else (size[0], size[1]), mode=arguments["mode"])
    found = located(paths, (*ENDINGS, ".parquet"), "an image or a Parquet file")
    tables = [file for file in found.files if file.path.endswith(".parquet")]
    if tables and len(tables) < len(found.files):
        raise ConfigurationError(f"{found.name(tables[0])} is beside files of images; give one kind to a channel")
    if tables:
        return _table(heads(found), arguments["image"], arguments["target"], look)
    if said := [name for name in ("image", "target") if arguments[name] is not None]:
        raise ConfigurationError(
            f"{said[0]}={arguments[said[0]]!r} is a column of Parquet files, and {paths[0]} has none; leave it out: "
            "the folder that an image is in is its class"
        )
    return ImageFolder(
        located=found, classes=classes_of(found.files, "put it into one, or all into the one folder"), look=look
    )


def _table(found: Heads, image: str | None, target: str | None, look: Look) -> ImageTable:
    import pyarrow as pa

    where, schema = found.located.name(found.located.files[0]), found.schema

    def holds_bytes(kind: Any) -> bool:
        held = kind.field("bytes").type if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0 else kind
        return bool(pa.types.is_binary(held) or pa.types.is_large_binary(held))

    binary = [each.name for each in schema if holds_bytes(each.type)]
    if image is None and len(binary) != 1:
        has = f"has {', '.join(binary)}" if binary else "has none"
        raise DataError(f"{where} {has} of images' bytes; say image='...', the name of a column of bytes")
    image = binary[0] if image is None else image
    if image not in schema.names or image not in binary:
        raise DataError(f"{where} has no column {image!r} of bytes; it has {', '.join(schema.names)}")
    others = [name for name in schema.names if name != image]
    if target is None and len(others) > 1:
        raise DataError(f"{where} has {', '.join(others)} beside the images; say target='...', which are the labels")
    target = target if target is not None else others[0] if others else None
    if target is not None and target not in others:
        raise DataError(f"{where} has no column {target!r} beside {image!r}; it has {', '.join(schema.names)}")
    classes = () if target is None else _classes(found, target)
    return ImageTable(heads=found, image=image, target=target, classes=classes, look=look)


def _classes(found: Heads, target: str) -> tuple[str, ...]:
    """The labels that there are, in their order, where they are text."""
    import pyarrow as pa

    kind = found.schema.field(target).type
    if not _is_text(kind.value_type if pa.types.is_dictionary(kind) else kind):
        return ()
    return tuple(sorted(read_columns(found, [target])[target].unique().to_pylist()))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _numbers(form: ImageTable, column: Any) -> Any:
    """Labels by row: numbers, and of text the place of each among the classes."""
    import pyarrow as pa
    import torch

    values = column.to_pylist()
    if _is_text(column.type):
        places = {text: place for place, text in enumerate(form.classes)}
        new = next((row for row, text in enumerate(values) if text not in places), None)
        if new is not None:
            raise DataError(
                f"column {form.target!r} of {place_of(form.heads, new)} holds {values[new]!r}, which was no class when "
                "the channel was opened; put the file back, or begin a new job"
            )
        return torch.tensor([places[text] for text in values])
    if pa.types.is_floating(column.type):
        return torch.tensor(values, dtype=torch.float32)
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return torch.tensor(values, dtype=torch.int64)
    raise DataError(f"labels are {column.type}; give numbers or text")
