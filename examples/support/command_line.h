#pragma once

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <string_view>

#include "muster/core/base/error.h"

namespace example {

inline constexpr int kLineLength = 110;  // of the help

/// An option whose value goes to `target`.
template <typename T>
boost::program_options::typed_value<T>* value(T& target, const char* name) {
  return boost::program_options::value<T>(&target)->value_name(name);
}

/// The same, with the value it has now as the default that the help shows.
template <typename T>
boost::program_options::typed_value<T>* withDefault(T& target, const char* name) {
  return value(target, name)->default_value(target, fmt::format("{}", target));
}

/// Reads a command line of named options and stores their values where the description says.
/// @throws muster::InvalidArgument with one sentence naming what is unknown, malformed or no option.
boost::program_options::variables_map parseCommandLine(
    int argc, const char* const* argv, const boost::program_options::options_description& options);

/// Whether the user said it: it is not there by its default.
bool said(const boost::program_options::variables_map& given, const char* option);

template <typename T>
void requireRange(std::string_view option, T value, T least, T most) {
  muster::require(value >= least && value <= most, "--{} must be between {} and {}, got {}", option, least,
                  most, value);
}

template <typename T>
void requireAtLeast(std::string_view option, T value, T least) {
  muster::require(value >= least, "--{} must be at least {}, got {}", option, least, value);
}

}  // namespace example
