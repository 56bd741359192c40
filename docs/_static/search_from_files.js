// A page that was opened as a file may not fetch other files: results then come without excerpts.
if (window.location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
