// Command lines of the programs.
#include <boost/json/serialize.hpp>

#include "muster/core/base/error.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "tests/fuzz/hostile_values.h"
#include "tests/fuzz/program_options.h"
#include "tests/fuzz/programs.h"
#include "tests/fuzz/schema_networks.h"

namespace muster::fuzz {
namespace {

void run(ByteSpan bytes) {
  if (bytes.empty()) return;
  const auto arguments = argumentsIn(bytes);
  std::vector<const char*> argv{"program"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  try {
    readLine(static_cast<char>(bytes[0]), static_cast<int>(argv.size()), argv.data());
  } catch (const InvalidArgument&) {
  } catch (const DeviceUnavailable&) {
  }
}

std::vector<Bytes> seeds() {
  return validLines();
}

/// Options of a program, and words of valid lines.
const std::vector<std::string>& wordsOf(char program) {
  static const auto all = [] {
    std::map<char, std::vector<std::string>> made;
    for (const char letter : kPrograms) {
      for (const auto& option : optionsOf(letter)) made[letter].push_back(option.argument);
      for (const auto& valid : validLines())
        for (auto& word : argumentsIn(valid)) made[letter].push_back(std::move(word));
    }
    return made;
  }();
  const auto found = all.find(program);
  return found == all.end() ? all.at('m') : found->second;
}

/// Arguments left out, repeated, exchanged, and values at the edges.
void mutate(Bytes& bytes, Draw& draw) {
  if (bytes.empty()) bytes.push_back('m');
  auto arguments = argumentsIn(bytes);
  for (std::size_t times = 1 + draw.below(3); times-- > 0;) {
    const auto at = arguments.begin() + static_cast<std::ptrdiff_t>(draw.below(arguments.size() + 1));
    const bool end = at == arguments.end();
    switch (draw.below(5)) {
      case 0:
        arguments.insert(at, draw.of(wordsOf(bytes[0])));
        break;
      case 1:
        if (!end) arguments.erase(at);
        break;
      case 2:
        if (!end) *at = draw.of(wordsOf(bytes[0]));
        break;
      case 3:
        if (!end) at->append(1, '=').append(draw.of(hostileOptions()));
        break;
      default:
        if (!end) *at = std::string(draw.of(hostileOptions()));
    }
  }
  const auto before = kPrograms.find(static_cast<char>(bytes[0])) % kPrograms.size();
  bytes = line(kPrograms[draw.oneIn(4) ? draw.below(kPrograms.size()) : before], arguments);
}

using Arguments = std::vector<std::string>;

/// Each option at each hostile value, and each two options of a program, added to a short valid line; each
/// option of each averaging rule at each hostile value, as an option and as a field of muster.
std::vector<Bytes> allLines() {
  std::vector<Bytes> all;
  const auto add = [&](char program, const Arguments& more, const Arguments& evenMore = {}) {
    Arguments arguments = argumentsIn(*std::ranges::find(validLines(), static_cast<std::uint8_t>(program),
                                                         [](const Bytes& valid) { return valid[0]; }));
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), evenMore.begin(), evenMore.end());
    all.push_back(line(program, arguments));
  };
  for (const char program : kPrograms) {
    const auto& options = optionsOf(program);
    for (const auto& option : options) {
      add(program, {option.argument});
      add(program, {option.argument + "="});
      if (!option.takesValue) continue;
      for (const auto& value : hostileOptions()) add(program, option.with(value));
      for (const auto& value : option.words) add(program, option.with(value));
    }
    for (std::size_t i = 0; i < options.size(); ++i)
      for (std::size_t j = i; j < options.size(); ++j)
        add(program, options[i].plainly(), options[j].plainly());
  }
  for (const auto& rule : namedStrategies(2)) {
    const auto options = optionsOf(rule.options);
    auto values = hostileOptions();
    for (const auto& option : options) values.push_back(option.preset);
    for (const auto& option : options)
      for (const auto& value : values) {
        add('m', {"--strategy", rule.name, "--strategy-options", option.name + "=" + value});
        add('u', {"training.strategy=" + rule.name, "training.strategy." + option.name + "=" + value});
      }
  }
  return all;
}

Sweep sweep() {
  const auto network = [](std::size_t number) {
    return line('u', {"network=" + boost::json::serialize(networkSweep().at(number).value)});
  };
  return joined({sweepOf(allLines()), {networkSweep().size(), network}});
}

}  // namespace

const Target targets::command_line{"command_line", &run, &seeds, &mutate, &sweep};

}  // namespace muster::fuzz
