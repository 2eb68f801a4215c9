#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <span>

namespace muster::fuzz {

/// Whole numbers at the limits of types, and small ones.
std::span<const std::int64_t> hostileIntegers();
/// Numbers that are not finite, not normal, not whole, or at the limits of types.
std::span<const double> hostileDoubles();
/// Values of every JSON type: the numbers above except those that JSON lacks, and empty or odd texts, arrays
/// and objects.
std::span<const boost::json::value> hostileValues();

}  // namespace muster::fuzz
