#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "muster/parallel/exchange/node_link.h"

namespace muster {

/// Sends the same number of bytes from each node to others, in pieces, so that heartbeats get through on a
/// slow link. Used by one thread at a time.
class NodeMessages {
 public:
  /// @param channel  used by nothing else.
  NodeMessages(NodeLink& link, int channel);

  /// Waits until all messages are done. All nodes make the same call.
  /// @param own  what this node sends.  @param all  [node] receives what each node sends; may be empty if
  /// this
  ///             node takes nothing. This node's part is not written.
  /// @param sends, takes  `bool (int node)`: whether that node sends or takes.
  template <typename Sends, typename Takes>
  void run(std::span<const std::byte> own, std::span<std::byte> all, Sends sends, Takes takes) {
    std::size_t pieces = 0;
    for (std::size_t at = 0; at < own.size(); at += kPiece, ++pieces) {
      const std::size_t length = std::min(kPiece, own.size() - at);
      NodeCall& call = calls_[pieces % calls_.size()];
      if (pieces >= calls_.size()) link_.wait(call);
      call.clear();
      for (int n = 0; n < link_.nodes(); ++n) {
        if (n == link_.node()) continue;
        if (takes(link_.node()) && sends(n))
          call.receive(n, channel_, all.subspan(static_cast<std::size_t>(n) * own.size() + at, length));
        if (sends(link_.node()) && takes(n)) call.send(n, channel_, own.subspan(at, length));
      }
      link_.begin(call);
    }
    for (std::size_t i = std::min(pieces, calls_.size()); i > 0; --i)
      link_.wait(calls_[(pieces - i) % calls_.size()]);
  }

 private:
  static constexpr std::size_t kPiece = 1 << 16;

  NodeLink& link_;
  const int channel_;
  std::array<NodeCall, 2> calls_;
};

inline NodeMessages::NodeMessages(NodeLink& link, int channel)
    : link_(link),
      channel_(channel),
      calls_{NodeCall(2 * static_cast<std::size_t>(link.nodes())),
             NodeCall(2 * static_cast<std::size_t>(link.nodes()))} {}

}  // namespace muster
