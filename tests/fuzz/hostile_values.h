#pragma once

#include <boost/json/value.hpp>

#include "tests/fuzz/target.h"

namespace muster::fuzz {

/// Whole numbers at the limits of types, and small ones.
std::span<const std::int64_t> hostileIntegers();
/// Numbers that are not finite, not normal, not whole, or at the limits of types.
std::span<const double> hostileDoubles();
/// Values of every JSON type: the numbers above except those that JSON lacks, and empty or odd texts, arrays
/// and objects.
std::span<const boost::json::value> hostileValues();
/// Values that options of a command line may reject.
const std::vector<std::string>& hostileOptions();

/// Texts that are not JSON, or JSON that a reader should refuse whatever its fields are.
const std::vector<std::string>& brokenJson();
/// Contents of other formats, which a reader of model files may name, and files that are too short.
const std::vector<Bytes>& foreignFiles();

}  // namespace muster::fuzz
