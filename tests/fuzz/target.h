#pragma once

#include "tests/support/standard.h"

namespace muster::fuzz {

using Bytes = std::vector<std::uint8_t>;
using ByteSpan = std::span<const std::uint8_t>;

/// Random numbers for mutations, by SplitMix64: the same on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  /// From 0 to count - 1; count is at least 1.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(bits() % count); }
  bool oneIn(std::size_t count) { return below(count) == 0; }
  template <typename Container>
  auto& of(Container&& all) {
    return all[below(all.size())];
  }
  /// A number at the limit of some type, or a small one.
  std::int64_t hostile();

 private:
  std::uint64_t state_;
};

/// Inputs by their number, from 0.
struct Sweep {
  std::size_t size = 0;
  std::function<Bytes(std::size_t number)> at = {};
};
Sweep sweepOf(std::vector<Bytes> inputs);
/// The inputs of all parts, one part after the other.
Sweep joined(std::vector<Sweep> parts);

/// A reader of untrusted bytes, under test.
struct Target {
  std::string_view name;
  /// Gives the bytes to the reader. Returns if the reader accepts them, or rejects them with its documented
  /// error and printable text. Throws otherwise.
  void (*run)(ByteSpan bytes);
  /// Valid inputs.
  std::vector<Bytes> (*seeds)();
  /// Changes an input within its format, so that errors are deep inside it.
  void (*mutate)(Bytes& bytes, Draw& draw);
  /// Those that change each place of valid inputs to each hostile value. Null if the target has none.
  Sweep (*sweep)() = nullptr;
};

/// Changes some bytes, whatever they mean.
void mutateBytes(Bytes& bytes, Draw& draw);

Bytes bytesOf(std::string_view text);
std::string_view textOf(ByteSpan bytes);
/// The parts of a text between the separators; none of an empty one.
std::vector<std::string> split(std::string_view text, char separator);

/// Reports a defect: throws std::logic_error, which no reader throws.
[[noreturn]] void defect(const std::string& what);
void expect(bool condition, std::string_view what);
/// Checks that an error's text can be printed.
void expectReadable(std::string_view message);

/// All targets, each in its own file.
namespace targets {
extern const Target safetensors, model, checkpoint, configuration, idx, gzip, cifar, tar, text, csv, picture,
    command_line, run_file, curves, results, dl4j;
}

}  // namespace muster::fuzz
