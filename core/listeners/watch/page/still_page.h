#pragma once

#include <span>
#include <string>
#include <string_view>

namespace muster {

/// Makes a page that needs no server and no network: one HTML file with its data, styles and scripts. Its
/// content security policy forbids it to load anything else.
///
/// @param news  JSON objects, whose fields are in core/listeners/watch/README.md: one for each run, as
///         `PageStore::all()` returns it, and perhaps one that describes all runs together. The page draws
///         the runs of one group as their mean with a band. Texts may hold any characters: each "<" is
///         escaped.
std::string stillPage(std::span<const std::string> news);

/// The page's element `title`, with its tags, near the beginning of each page. Recognises a page.
std::string_view pageTitle();

}  // namespace muster
