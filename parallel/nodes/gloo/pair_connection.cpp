#include "muster/parallel/nodes/gloo/pair_connection.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <sstream>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "muster/core/base/log.h"
#include "muster/parallel/nodes/node_transport.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using gloo::transport::Context;

constexpr std::uint64_t kHelloName = ~std::uint64_t{0};  // no message of MessageQueue has it

/// The first message in each direction.
struct Hello {
  std::uint64_t magic = 0x6d75737465726869;
  std::array<char, 32> word{};
  std::int64_t node = 0;

  Hello(const std::string& text, int number) : node(number) {
    std::ranges::copy(text.substr(0, word.size()), word.begin());
  }
  bool operator==(const Hello&) const = default;
};

std::string hexOf(const std::vector<char>& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

/// The bytes; empty if the text does not hold `size` bytes.
std::vector<char> bytesOf(const std::string& text, std::size_t size) {
  if (text.size() != 2 * size || text.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  std::vector<char> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// Where a node listens for the other one, in an attempt to connect.
struct Address {
  int attempt = 0;
  std::vector<char> bytes;
};

class PairConnection {
 public:
  PairConnection(gloo::transport::Device& device, const PairMeeting& meeting, int other,
                 std::chrono::milliseconds limit)
      : device_(device),
        meeting_(meeting),
        other_(other),
        end_(Clock::now() + limit),
        helloLimit_(std::clamp<std::chrono::milliseconds>(limit / 16, 100ms, 10s)) {}

  std::shared_ptr<Context> connect() {
    std::string why = "it has not published its address";
    for (int attempt = 1;; ++attempt) {
      auto context = device_.createContext(meeting_.node, meeting_.nodes);
      // Gloo waits five times this long for a connection.
      context->setTimeout(std::max<std::chrono::milliseconds>(rest() / 5, 1ms));
      auto* const pair = context->createPair(other_).get();
      const auto own = pair->address().bytes();
      const Address theirs = exchange(attempt, own, why);
      attempt = theirs.attempt;
      try {
        pair->connect(theirs.bytes);
        if (greet(*context)) return context;
        why = "another process has connected";
      } catch (const std::exception& problem) {
        why = wordsOfGloo(problem.what());
      }
      if (rest() <= 0ms) throw NodeFailure(why);
      logWarning("a connection for node {} was not with it ({}); trying again", other_, why);
    }
  }

 private:
  std::chrono::milliseconds rest() const {
    return std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
  }

  /// Publishes the own address, and waits for the other node's in the same attempt. The node that has tried
  /// less often takes the attempt's number from the other one.
  Address exchange(int attempt, const std::vector<char>& own, const std::string& why) const {
    for (publish(attempt, own);; std::this_thread::sleep_for(10ms)) {
      Address theirs = published(own.size());
      if (theirs.attempt > attempt) publish(theirs.attempt, own);
      if (theirs.attempt >= attempt) return theirs;
      if (rest() <= 0ms) throw NodeFailure(why);
    }
  }

  void publish(int attempt, const std::vector<char>& own) const {
    meeting_.store.put(addressName(meeting_.prefix, meeting_.node, other_),
                       fmt::format("{} {} {}\n", meeting_.word, attempt, hexOf(own)));
  }

  /// The other node's address; attempt 0 if it has published none of this training.
  Address published(std::size_t size) const {
    std::istringstream text(meeting_.store.get(addressName(meeting_.prefix, other_, meeting_.node)));
    std::string word, hex;
    Address theirs;
    text >> word >> theirs.attempt >> hex;
    if (!text || word != meeting_.word) return {};
    theirs.bytes = bytesOf(hex, size);
    if (theirs.bytes.empty() || theirs.attempt < 0) return {};
    return theirs;
  }

  /// @return whether the other end is the other node. @throws what Gloo throws.
  bool greet(Context& context) const {
    Hello own(meeting_.word, meeting_.node), theirs("", -1);
    const auto sent = context.createUnboundBuffer(&own, sizeof own),
               received = context.createUnboundBuffer(&theirs, sizeof theirs);
    received->recv(other_, kHelloName);
    sent->send(other_, kHelloName);
    return received->waitRecv(nullptr, helloLimit_) && theirs == Hello(meeting_.word, other_) &&
           sent->waitSend(nullptr, helloLimit_);
  }

  gloo::transport::Device& device_;
  const PairMeeting& meeting_;
  const int other_;
  const Clock::time_point end_;
  const std::chrono::milliseconds helloLimit_;
};

}  // namespace

std::string addressName(const std::string& prefix, int from, int to) {
  return fmt::format("{}address-{}-{}", prefix, from, to);
}

std::string_view wordsOfGloo(std::string_view why) {
  if (const auto end = why.find("] "); why.starts_with('[') && end != why.npos) why.remove_prefix(end + 2);
  return why;
}

std::shared_ptr<Context> connectPair(gloo::transport::Device& device, const PairMeeting& meeting, int other,
                                     std::chrono::milliseconds limit) {
  return PairConnection(device, meeting, other, limit).connect();
}

}  // namespace muster
