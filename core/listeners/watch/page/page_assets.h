#pragma once

#include <span>
#include <string_view>

namespace muster {

/// A file of the page, embedded when muster was built.
struct PageAsset {
  std::string_view path;  ///< as in "/page.js"
  std::string_view type;  ///< its media type
  std::string_view text;
};

/// The files that a page consists of.
std::span<const PageAsset> pageAssets();

}  // namespace muster
