#include "tests/fuzz/program_options.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <cctype>
#include <cstdio>
#include <sstream>

#include "muster/parallel/run/run_schema.h"
#include "tests/fuzz/json_changes.h"
#include "tests/fuzz/programs.h"

namespace muster::fuzz {
namespace {

namespace json = boost::json;

/// What `print` writes to standard output.
std::string outputOf(const std::function<void()>& print) {
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO), file = ::memfd_create("output", MFD_CLOEXEC);
  if (before < 0 || file < 0 || ::dup2(file, STDOUT_FILENO) < 0)
    throw std::runtime_error("cannot redirect standard output");
  print();
  std::fflush(stdout);
  ::dup2(before, STDOUT_FILENO);
  std::string text(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)), '\0');
  if (::pread(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("cannot read standard output");
  ::close(file);
  ::close(before);
  return text;
}

/// A valid value, by the name of a value in the help.
std::string plainOf(const std::string& kind) {
  return kind == "N" || kind == "I"         ? "2"
         : kind == "X" || kind == "SECONDS" ? "0.5"
         : kind == "BOOL"                   ? "true"
                                            : "a";
}

/// The value that a valid line gives to an option; "" if none does.
std::string inValidLines(const std::string& argument) {
  for (const auto& valid : validLines()) {
    const auto arguments = argumentsIn(valid);
    for (std::size_t i = 0; i + 1 < arguments.size(); ++i)
      if (arguments[i] == argument && !arguments[i + 1].starts_with("--")) return arguments[i + 1];
  }
  return "";
}

/// Adds the words of a line of help text, without punctuation.
void addWords(std::istream& text, std::vector<std::string>& words) {
  for (std::string word; text >> word;) {
    while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.back()))) word.pop_back();
    while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.front()))) word.erase(0, 1);
    if (!word.empty()) words.push_back(word);
  }
}

/// Begins at "--NAME VALUE (=PRESET)  help", where VALUE and PRESET may be missing.
ProgramOption optionIn(const std::string& line) {
  std::istringstream text(line);
  ProgramOption option{};
  text >> option.argument;
  std::string rest =
      line.substr(static_cast<std::size_t>(line.find(option.argument)) + option.argument.size());
  std::istringstream head(rest.substr(0, rest.find("  ")));  // two spaces before the help
  std::string kind, preset;
  head >> kind >> preset;
  option.takesValue = !kind.empty();
  option.plain = inValidLines(option.argument);
  if (option.plain.empty() && preset.starts_with("(=")) option.plain = preset.substr(2, preset.size() - 3);
  if (option.plain.empty()) option.plain = plainOf(kind);
  addWords(text, option.words);
  return option;
}

std::vector<ProgramOption> optionsInHelp(char program) {
  const std::array arguments{"program", "--help"};
  std::istringstream help(
      outputOf([&] { readLine(program, static_cast<int>(arguments.size()), arguments.data()); }));
  std::vector<ProgramOption> all;
  bool within = false;  // an option's description
  for (std::string line; std::getline(help, line);) {
    const bool first = line.starts_with("  --");
    within = first || (within && line.starts_with("   "));
    if (first) all.push_back(optionIn(line));
    std::istringstream text(line);
    if (within && !first) addWords(text, all.back().words);
  }
  return all;
}

void addPaths(const std::string& path, const json::value& value, std::map<std::string, std::string>& paths) {
  if (!path.empty()) paths.emplace(path, json::serialize(value));
  if (const auto* const array = value.if_array())
    for (std::size_t i = 0; i < array->size(); ++i)
      addPaths(path + "[" + std::to_string(i) + "]", (*array)[i], paths);
  if (const auto* const object = value.if_object())
    for (const auto& [key, inner] : *object)
      addPaths(path.empty() ? std::string(key) : path + "." + std::string(key), inner, paths);
}

/// Adds the properties of a schema, and those within.
void addSchemaPaths(const std::string& path, const json::value& schema,
                    std::map<std::string, std::string>& paths) {
  const auto* const object = schema.if_object();
  const auto* const properties = object ? object->if_contains("properties") : nullptr;
  if (properties == nullptr) return;
  for (const auto& [key, inner] : properties->as_object()) {
    const std::string name = path.empty() ? std::string(key) : path + "." + std::string(key);
    const auto* const preset = inner.as_object().if_contains("default");
    paths.emplace(name, preset ? json::serialize(*preset) : "{}");
    addSchemaPaths(name, inner, paths);
  }
}

std::vector<ProgramOption> pathsOfSet() {
  const auto schema = *jsonIn(muster::runFileSchema());
  std::map<std::string, std::string> paths;  // with a value
  addPaths("", *jsonIn(runFileText()), paths);
  addSchemaPaths("", schema, paths);
  const Vocabulary vocabulary({}, schema);
  std::vector<ProgramOption> all;
  for (const auto& [path, plain] : paths) {
    ProgramOption option{.argument = path, .takesValue = true, .plain = plain, .words = {}};
    for (const auto& word : vocabulary.of(path.substr(path.rfind('.') + 1)))
      option.words.push_back(json::serialize(word));
    all.push_back(std::move(option));
  }
  return all;
}

}  // namespace

std::vector<std::string> ProgramOption::with(const std::string& value) const {
  if (!argument.starts_with("--")) return {argument + "=" + value};
  return {argument, value};
}

std::vector<std::string> ProgramOption::plainly() const {
  return takesValue ? with(plain) : std::vector{argument};
}

const std::vector<ProgramOption>& optionsOf(char program) {
  static const auto all = [] {
    std::map<char, std::vector<ProgramOption>> made;
    for (const char letter : kPrograms) made[letter] = letter == 'u' ? pathsOfSet() : optionsInHelp(letter);
    return made;
  }();
  return all.at(program);
}

}  // namespace muster::fuzz
