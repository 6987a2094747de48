"""A folder or zip of images of which nothing needs to be known: what there is before the first label."""

from dataclasses import replace

import numpy as np

from protocon.data.files.decode_all import Members
from protocon.data.files.file_report import SkippedFile
from protocon.data.files.places import need_root, open_store, wrong_place
from protocon.data.imageset import UNKNOWN, DataBundle
from protocon.data.labels.file_finder import FileFinder
from protocon.data.labels.label_match import match_labels
from protocon.data.source_options import FILE_OPTIONS, SourceOptions
from protocon.data.sources.labelled_folder import find_labels, has_labels_file
from protocon.data.sources.listing import FileListing, make_bundle, sort_out

_EXPECTED = "image files, in any folders"


def unlabelled_folder(options: SourceOptions) -> DataBundle:
    """Images anywhere below root (a folder or a zip), with the labels that there are: none, one or many.

    Labels come from the option `labels`, or from labels.csv in root; folders say nothing. Of the methods, only
    those that learn without labels (`protocon pretrain`) can be trained on it.
    """
    options.accept_only("unlabelled folder", *FILE_OPTIONS, "labels")
    root = need_root(options, "unlabelled folder", _EXPECTED)
    store = open_store(root, "unlabelled folder", _EXPECTED)
    images, skipped = sort_out(store.files())
    if not images:
        raise wrong_place(root, "unlabelled folder", _EXPECTED)
    labels, names, warnings = np.full(len(images), UNKNOWN), tuple[str, ...](), list[str]()
    notes: list[str] = []
    if options.labels is not None or has_labels_file(root, store):
        files = [entry.path for entry in images]
        finder = FileFinder(files, root=root)
        table, source, own = find_labels(root, store, options, finder)
        skipped = [SkippedFile(s.path, "the labels file") if s.path == own else s for s in skipped]
        matched = match_labels(source, table, files, skipped=skipped, finder=finder, at_least=0)
        labels, names, warnings = matched.labels, matched.class_names, matched.warnings
        notes = matched.notes
    listing = FileListing("unlabelled folder", store, names, Members(images, labels), None, skipped, warnings, notes)
    bad_files = "skip" if options.bad_files == "auto" else options.bad_files
    return make_bundle(listing, replace(options, bad_files=bad_files))
