#pragma once

#include <array>
#include <string_view>

namespace example {

/// The data sets that are downloaded, by the names that programs and run files take. `loadData` has a row for
/// each.
inline constexpr std::array<std::string_view, 4> kPublishedData{"mnist", "fashion", "kmnist", "cifar10"};

}  // namespace example
