#include "examples/muster/command_line.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "examples/muster/standard_streams.h"
#include "muster/core/base/nearest_word.h"

namespace program {
namespace {

namespace po = boost::program_options;

template <typename T>
std::string_view kindOf() {
  if constexpr (std::same_as<T, bool>) return "true or false";
  return std::integral<T> ? "a whole number" : "a number";
}

/// Why a text is not a value of this type.
template <typename T>
std::string problemOf(const std::string& text) {
  if constexpr (!std::same_as<T, bool>) {
    T number{};
    const char* const last = text.data() + text.size();
    const auto [end, status] = std::from_chars(text.data(), last, number);
    if (status == std::errc::result_out_of_range && end == last)
      return fmt::format("the number is too {}", text.starts_with('-') ? "small" : "large");
  }
  return fmt::format("{} is wanted", kindOf<T>());
}

template <typename T>
void parseAs(const char* name, const std::string& text, T& target) {
  boost::any value;
  try {
    po::validate(value, std::vector{text}, &target, 0);
  } catch (const po::error&) {
    throw muster::InvalidArgument(
        fmt::format("the argument ('{}') for option '--{}' is invalid: {}; --help lists the options", text,
                    name, problemOf<T>(text)));
  }
  target = boost::any_cast<T>(value);
}

/// What is wrong with the arguments. Boost replaces its own names, as "%prefix%", in a message until it has
/// none, which does not end if an argument has one.
std::string problemIn(std::span<const char* const> arguments, const po::error& error) {
  const auto mayHaveName = [](std::string_view argument) { return std::ranges::count(argument, '%') > 1; };
  if (std::ranges::none_of(arguments, mayHaveName)) return error.what();
  return fmt::format("the arguments \"{}\" cannot be read", fmt::join(arguments, " "));
}

/// The end of the message about an option that there is not: one that begins with its words, or the nearest.
std::string hintFor(std::string_view option, std::span<const std::string> known) {
  option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
  const auto longer = std::ranges::find_if(known, [&](const std::string& one) {
    return !option.empty() && one.starts_with(option) &&
           (one[option.size()] == '-' || one.substr(option.size()) == "s");
  });
  const auto nearest = longer != known.end() ? std::optional(*longer) : muster::nearestWord(option, known);
  return nearest ? fmt::format("; the nearest is --{}", *nearest) : "";
}

}  // namespace

void CommandLine::parse(const char* name, const std::string& text, int& number) {
  parseAs(name, text, number);
}
void CommandLine::parse(const char* name, const std::string& text, std::int64_t& number) {
  parseAs(name, text, number);
}
void CommandLine::parse(const char* name, const std::string& text, double& number) {
  parseAs(name, text, number);
}
void CommandLine::parse(const char* name, const std::string& text, bool& value) {
  parseAs(name, text, value);
}

void CommandLine::addParsed(const char* name, const std::string& preset, const char* value,
                            const std::string& help, std::function<void(const std::string&)> take) {
  auto* const read = po::value<std::string>()->value_name(value)->notifier(std::move(take));
  if (!preset.empty()) read->default_value(preset);
  groups_.back().add_options()(name, read, help.c_str());
}

void CommandLine::list(const char* name, std::vector<std::string>& target, const char* value,
                       const char* help) {
  groups_.back().add_options()(
      name, po::value<std::vector<std::string>>(&target)->value_name(value)->composing(), help);
}

void CommandLine::flag(const char* name, bool& target, const char* help) {
  groups_.back().add_options()(name, po::bool_switch(&target), help);
}

void CommandLine::flag(const char* name, std::function<void()> take, const char* help) {
  auto* const given = po::bool_switch()->notifier([take = std::move(take)](bool on) {
    if (on) take();
  });
  groups_.back().add_options()(name, given, help);
}

bool CommandLine::read(int argc, const char* const* argv) {
  groups_.back().add_options()("help", "this text");
  po::options_description all(kLineLength);
  for (const auto& group : groups_) all.add(group);
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const auto parsed = po::command_line_parser(argc, argv).options(all).style(style).run();
    std::vector<std::string> arguments;
    for (const auto& option : parsed.options)
      if (option.position_key >= 0)
        arguments.insert(arguments.end(), option.value.begin(), option.value.end());
    if (arguments_ != nullptr) arguments_->swap(arguments);
    muster::require(arguments.empty(), "unexpected argument \"{}\"; --help lists the options",
                    fmt::join(arguments, " "));
    po::store(parsed, given_);
  } catch (const po::unknown_option& unknown) {
    std::vector<std::string> known;
    for (const auto& option : all.options()) known.push_back(option->long_name());
    const auto whole = unknown.get_option_name(), option = whole.substr(0, whole.find('='));
    throw muster::InvalidArgument(
        fmt::format("there is no option {}{}; --help lists the options", option, hintFor(option, known)));
  } catch (const po::error& error) {
    const std::span arguments(argv + 1, static_cast<std::size_t>(std::max(argc - 1, 0)));
    throw muster::InvalidArgument(fmt::format("{}; --help lists the options", problemIn(arguments, error)));
  }
  if (given_.count("help") > 0) {
    std::ostringstream text;
    if (!usage_.empty()) text << "Usage: " << usage_ << "\n\n";
    text << introduction_ << all;
    printResult(text.str());
    return false;
  }
  po::notify(given_);
  for (const auto& [option, text] : topics_)
    if (given_.count(option) > 0 && given_[option].as<std::string>() == "help") {
      printResult(text());
      return false;
    }
  return true;
}

bool CommandLine::has(const char* option) const {
  return std::ranges::any_of(groups_, [&](const po::options_description& group) {
    return group.find_nothrow(option, false) != nullptr;
  });
}

bool CommandLine::said(const char* option) const {
  return given_.count(option) > 0 && !given_[option].defaulted();
}

void CommandLine::refuse(std::initializer_list<const char*> options, std::string_view why) const {
  for (const char* const option : options) muster::require(!said(option), "--{} {}", option, why);
}

}  // namespace program
