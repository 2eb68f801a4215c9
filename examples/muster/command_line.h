#pragma once

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <boost/program_options.hpp>

#include "muster/core/base/error.h"
#include "muster/core/base/fields.h"

namespace program {

inline constexpr int kLineLength = 110;  // columns of the help

/// Rules for `CommandLine::add`; each throws for a value that is not allowed.
struct AnyValue {
  void operator()(const char*, const auto&) const {}
};
inline auto between(std::int64_t least, std::int64_t most) {
  return [=](const char* option, std::int64_t value) {
    muster::require(value >= least && value <= most, "--{} must be between {} and {}, got {}", option, least,
                    most, value);
  };
}
inline auto atLeast(std::int64_t least) {
  return [=](const char* option, std::int64_t value) {
    muster::require(value >= least, "--{} must be at least {}, got {}", option, least, value);
  };
}
inline void positive(const char* option, double value) {
  muster::require(value > 0 && std::isfinite(value), "--{} must be a positive number, got {}", option, value);
}
/// Rejects "", which results from an unset variable in a script. Every path has this rule.
inline void fileName(const char* option, const std::filesystem::path& value) {
  muster::require(!value.empty(), "--{} needs the name of a file or directory", option);
}

/// The command line of a program. Each option is described once: name, target, the value's name in the help,
/// help text and rule.
class CommandLine {
 public:
  /// @param introduction  the help begins with it.
  explicit CommandLine(std::string_view introduction) : introduction_(introduction) {}

  /// Sets the help's first line, above the introduction, such as "muster train run.json [options]".
  void usage(std::string call) { usage_ = std::move(call); }
  /// The help lists the following options under this title.
  void group(const char* title) { groups_.emplace_back(title, kLineLength); }

  /// Adds an option whose value goes to `target`: a number, a bool, a text, a path, one of an enum's names,
  /// or an optional of these. The target's current value is the default; the help shows it unless it is
  /// empty.
  /// @param rule  called with the option's name and value; throws if the value is not allowed.
  template <typename T, typename Rule = AnyValue>
  void add(const char* name, T& target, const char* value, const std::string& help, Rule rule = {}) {
    addParsed(name, textOf(target), value, help, [name, &target, rule](const std::string& text) {
      if constexpr (requires { target.has_value(); })
        take(name, target.emplace(), text, rule);
      else
        take(name, target, text, rule);
    });
  }
  /// Adds an option whose text `take` reads. @param preset  the default; "": none.
  void addParsed(const char* name, const std::string& preset, const char* value, const std::string& help,
                 std::function<void(const std::string&)> take);
  /// Adds an option that may be repeated; its texts go to `target` in order.
  void list(const char* name, std::vector<std::string>& target, const char* value, const char* help);
  /// Adds an option without a value.
  void flag(const char* name, bool& target, const char* help);
  /// As above; calls `take` if the option is given.
  void flag(const char* name, std::function<void()> take, const char* help);

  /// Takes the arguments that are no options, such as files, wherever they are. Without this call they are
  /// refused.
  void arguments(std::vector<std::string>& target) { arguments_ = &target; }
  /// Makes `read` print `text` for the value "help" of an option.
  void topic(const char* option, std::function<std::string()> text) { topics_[option] = std::move(text); }

  /// Reads the arguments and fills the targets. @return false if it printed the help.
  /// @throws muster::InvalidArgument naming the option that is unknown, malformed or out of range.
  bool read(int argc, const char* const* argv);
  /// Whether there is an option of this name.
  bool has(const char* option) const;
  /// Whether the user gave an option, after `read`.
  bool said(const char* option) const;
  /// @throws muster::InvalidArgument "--NAME why" for the first of these options that the user gave.
  void refuse(std::initializer_list<const char*> options, std::string_view why) const;

 private:
  template <typename T>
  static std::string textOf(const T& value) {
    if constexpr (requires { value.has_value(); })
      return value ? textOf(*value) : "";
    else if constexpr (std::is_enum_v<T>)
      return std::string(muster::nameOf(value));
    else if constexpr (std::is_same_v<T, std::filesystem::path>)
      return value.string();
    else
      return fmt::format("{}", value);
  }
  template <typename T, typename Rule>
  static void take(const char* name, T& target, const std::string& text, Rule rule) {
    if constexpr (std::is_enum_v<T>) {
      target = muster::valueNamed<T>(fmt::format("--{}", name), text);
    } else if constexpr (std::is_arithmetic_v<T>) {
      parse(name, text, target);
    } else {
      if constexpr (std::is_same_v<T, std::filesystem::path>) fileName(name, text);
      target = text;
    }
    rule(name, target);
  }
  static void parse(const char* name, const std::string& text, int& number);
  static void parse(const char* name, const std::string& text, std::int64_t& number);
  static void parse(const char* name, const std::string& text, double& number);
  static void parse(const char* name, const std::string& text, bool& value);

  std::string_view introduction_;
  std::string usage_;
  std::vector<std::string>* arguments_ = nullptr;  // null: none are taken
  std::deque<boost::program_options::options_description> groups_;
  std::map<std::string, std::function<std::string()>> topics_;  // [option]
  boost::program_options::variables_map given_;
};

}  // namespace program
