#include <boost/json/serialize.hpp>

#include "muster/parallel/strategies/named_strategy.h"
#include "tests/fuzz/command_line.h"
#include "tests/fuzz/program_options.h"
#include "tests/fuzz/programs.h"
#include "tests/fuzz/schema_networks.h"

namespace muster::fuzz {
namespace {

using Arguments = std::vector<std::string>;

/// Adds options to the short valid line of a program.
class Lines {
 public:
  explicit Lines(std::vector<Bytes>& all) : all_(all) {}

  void add(char program, const Arguments& more, const Arguments& evenMore = {}) {
    Arguments arguments;
    for (const auto& valid : validLines())
      if (valid[0] == static_cast<std::uint8_t>(program)) {
        arguments = argumentsIn(textOf(ByteSpan(valid).subspan(1)));
        break;
      }
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), evenMore.begin(), evenMore.end());
    all_.push_back(line(program, arguments));
  }

 private:
  std::vector<Bytes>& all_;
};

void addValues(char program, Lines& lines) {
  for (const auto& option : optionsOf(program)) {
    lines.add(program, {option.argument});
    lines.add(program, {option.argument + "="});
    if (!option.takesValue) continue;
    for (const auto& value : hostileTexts()) lines.add(program, option.with(value));
    for (const auto& value : option.words) lines.add(program, option.with(value));
  }
}

void addPairs(char program, Lines& lines) {
  const auto& options = optionsOf(program);
  for (std::size_t i = 0; i < options.size(); ++i)
    for (std::size_t j = i; j < options.size(); ++j)
      lines.add(program, options[i].plainly(), options[j].plainly());
}

/// Each option of each averaging rule, as an option and as a field of muster.
void addRules(Lines& lines) {
  for (const auto& rule : namedStrategies(2)) {
    const auto options = optionsOf(rule.options);
    for (const auto& option : options) {
      auto values = hostileTexts();
      for (const auto& other : options) values.push_back(other.preset);
      for (const auto& value : values) {
        lines.add('m', {"--strategy", rule.name, "--strategy-options", option.name + "=" + value});
        lines.add('u', {"training.strategy=" + rule.name, "training.strategy." + option.name + "=" + value});
      }
    }
  }
}

std::vector<Bytes> allLines() {
  std::vector<Bytes> all;
  Lines lines(all);
  for (const char program : kPrograms) {
    addValues(program, lines);
    addPairs(program, lines);
  }
  addRules(lines);
  return all;
}

}  // namespace

std::optional<Bytes> commandLineSweep(std::size_t number) {
  static const auto all = allLines();
  if (number < all.size()) return all[number];
  const auto network = networkSweep().at(number - all.size());
  if (!network) return std::nullopt;
  return line('u', {"network=" + boost::json::serialize(network->value)});
}

}  // namespace muster::fuzz
