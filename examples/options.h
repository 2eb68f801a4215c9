#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <variant>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/terminal_size.h"

// The command line of a small program. To use it in your own, copy this file.

namespace example {

/// An option: with {"epochs", &epochs, "passes over the data"}, `--epochs 3` or `--epochs=3` sets `epochs`,
/// whose value before is the default. A bool takes no value: `--imagenet` makes it true.
struct Option {
  std::string_view name;
  std::variant<bool*, int*, std::int64_t*, double*, std::string*> value;
  std::string_view help;
};

/// Whole numbers are counts or seeds and at least 1, others at least 0 and finite.
template <typename T>
void parse(const Option& option, std::string_view text, T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    muster::require(!text.empty(), "--{} needs a value that is not empty", option.name);
    value = text;
  } else if constexpr (!std::is_same_v<T, bool>) {
    constexpr T kLeast = std::is_integral_v<T> ? 1 : 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool allowed = value >= kLeast && value <= std::numeric_limits<T>::max();
    muster::require(error == std::errc() && end == text.data() + text.size() && allowed,
                    "--{} needs a {} of at least {}, got \"{}\"", option.name,
                    std::is_integral_v<T> ? "whole number" : "number", kLeast, text);
  }
}

inline void printHelp(std::string_view introduction, const std::vector<Option>& options) {
  std::vector<std::string> heads;  // [option] "epochs VALUE (=3)"
  std::size_t width = 0;
  for (const Option& option : options) {
    const bool flag = std::holds_alternative<bool*>(option.value);
    const auto preset = std::visit([](const auto* value) { return fmt::format("{}", *value); }, option.value);
    heads.push_back(fmt::format("{}{}{}", option.name, flag ? "" : " VALUE",
                                flag || preset.empty() ? "" : fmt::format(" (={})", preset)));
    width = std::max(width, heads.back().size());
  }
  fmt::print("{}\n\nOptions:\n", introduction);
  for (std::size_t i = 0; i < options.size(); ++i)
    fmt::print("  --{:<{}}  {}\n", heads[i], width, options[i].help);
}

/// @return false if `--help` or `-h` was among the arguments and the help was printed.
/// @throws muster::InvalidArgument naming the option that is unknown or has a wrong value.
inline bool readOptions(const std::vector<std::string_view>& arguments, std::string_view introduction,
                        const std::vector<Option>& options) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i], name = argument.substr(0, argument.find('='));
    if (argument == "--help" || argument == "-h") return printHelp(introduction, options), false;
    const Option* found = nullptr;
    for (const Option& option : options)
      if (name.starts_with("--") && name.substr(2) == option.name) found = &option;
    muster::require(
        found != nullptr, "there is no option {}: --help lists all{}", name,
        introduction.find("muster train has more") != introduction.npos ? ", and muster train has more" : "");
    if (bool* const* flag = std::get_if<bool*>(&found->value)) {
      muster::require(name == argument, "{} takes no value", name);
      **flag = true;
      continue;
    }
    muster::require(name != argument || i + 1 < arguments.size(), "{} needs a value", name);
    const auto text = name != argument ? argument.substr(name.size() + 1) : arguments[++i];
    std::visit([&](auto* value) { parse(*found, text, *value); }, found->value);
  }
  return true;
}

/// The `main` of a program: reads the options, then calls `run`. `--help` or `-h` prints the introduction and
/// the options instead.
/// @return the exit status: 0; 1 after an exception, and 2 if it is for a wrong option; a line on standard
///         error says what is wrong.
inline int runExample(int argc, char** argv, std::string_view introduction,
                      const std::vector<Option>& options, const std::function<void()>& run) {
  const auto program = std::filesystem::path(argv[0]).filename().string();
  int status = 0;
  try {
    if (readOptions({argv + 1, argv + argc}, introduction, options)) run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}", muster::linesForTerminal(fmt::format("{}: {}", program, error.what())));
    status = dynamic_cast<const muster::InvalidArgument*>(&error) != nullptr ? 2 : 1;
  }
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  fmt::print(stderr, "{}: standard output could not be written: {}\n", program,
             std::generic_category().message(errno));
  return 1;
}

}  // namespace example
