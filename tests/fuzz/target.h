#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  auto& of(Container& all) {
    return all[below(all.size())];
  }
  /// A number at the edge of what some type holds, or a small one.
  std::int64_t hostile();

 private:
  std::uint64_t state_;
};

/// A reader of foreign bytes, under test.
struct Target {
  std::string_view name;
  /// Gives the bytes to the reader. Returns if they are read, or refused with the error that the reader
  /// documents and in words that can be printed. Throws otherwise.
  void (*run)(ByteSpan bytes);
  /// Valid inputs.
  std::vector<Bytes> (*seeds)();
  /// Changes an input within its format, so that what is wrong lies deep.
  void (*mutate)(Bytes& bytes, Draw& draw);
};

/// Changes some bytes, whatever they mean.
void mutateBytes(Bytes& bytes, Draw& draw);

Bytes bytesOf(std::string_view text);
std::string_view textOf(ByteSpan bytes);

/// Throws std::logic_error, which no reader does: a defect is found.
[[noreturn]] void defect(const std::string& what);
void expect(bool condition, std::string_view what);
/// An error's text is shown to people.
void expectReadable(std::string_view message);

/// All of them, each in a file of its own.
namespace targets {
extern const Target safetensors, model, checkpoint, configuration, idx, gzip, cifar, tar, text, csv,
    command_line, run_file;
}

}  // namespace muster::fuzz
