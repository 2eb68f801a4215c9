// The part of NodeLink that sends and receives notices, beside the messages of calls.
#include <algorithm>

#include "muster/parallel/nodes/node_link.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr int kControl = 0;  // a channel

}  // namespace

/// Waits until all nodes have answered.
void NodeLink::greet(Clock::time_point begin) {
  for (int n = 0; n < nodes(); ++n) {
    if (n == node()) continue;
    listenTo(n);
    tell(n, NodeNotice::Hello);
  }
  for (int n = 0; n < nodes();) {
    poll();
    if (failing_) {
      const Lock lock(mutex_);
      throw NodeFailure(breakdown_.problem);
    }
    if (n == node() || health_.greeted(n)) {
      ++n;
      continue;
    }
    if (Clock::now() - begin > health_.silence())
      throw NodeFailure(fmt::format("{} has not answered for {} s", nameOf(n),
                                    std::chrono::duration<double>(health_.silence()).count()));
    std::this_thread::sleep_for(1ms);
  }
}

void NodeLink::listenTo(int node) {
  post(nullptr, {NodeMessage::Way::Receive, node, kControl, mailbox(node).in->bytes()});
}

/// Does nothing if the previous notice to the node is still in transfer.
void NodeLink::tell(int node, NodeNotice::Kind kind, int culprit) {
  if (mailbox(node).sending) return;
  *mailbox(node).out = health_.notice(kind, culprit);
  post(nullptr, {NodeMessage::Way::Send, node, kControl, mailbox(node).out->bytes()});
}

void NodeLink::hear(int node) {
  if (const auto failure = health_.take(node, *mailbox(node).in)) {
    if (failure->lost) lose(failure->culprit);
    return break_(failure->culprit, failure->problem);
  }
  if (!health_.ended(node)) listenTo(node);  // else it sends nothing more
}

void NodeLink::beat() {
  const auto now = Clock::now();
  if (health_.beats(now))
    for (int n = 0; n < nodes(); ++n)
      if (n != node() && !health_.ended(n)) tell(n, NodeNotice::Alive);
  health_.look(
      now, [this](int n) { return open_.waitsFor(n); },
      [this](const NodeHealth::Failure& failure) {
        if (failure.lost) lose(failure.culprit);
        break_(failure.culprit, failure.problem);
      });
}

/// Tells the other nodes, for a short time at most: a node that cannot be told detects the silence.
void NodeLink::announceFailure() {
  int culprit = 0;
  {
    const Lock lock(mutex_);
    if (breakdown_.problem.empty()) {
      breakdown_.problem = "another thread of this node has failed";
      breakdown_.culprit = node();
    }
    culprit = breakdown_.culprit;
  }
  const auto concerns = [&](int n) { return n != node() && n != culprit; };
  try {
    const auto end = Clock::now() + std::min<std::chrono::milliseconds>(health_.silence() / 4, 500ms);
    std::vector<char> told(mailboxes_.size());
    const auto finished = [&] {
      for (int n = 0; n < nodes(); ++n)
        if (concerns(n) && (!told[static_cast<std::size_t>(n)] || mailbox(n).sending)) return false;
      return true;
    };
    while (!finished() && Clock::now() < end) {
      for (int n = 0; n < nodes(); ++n) {
        auto& done = told[static_cast<std::size_t>(n)];
        if (!concerns(n) || done || mailbox(n).sending) continue;
        tell(n, health_.failed(culprit) ? NodeNotice::Heard : NodeNotice::Failed, culprit);
        done = 1;
      }
      try {
        poll();
      } catch (const NodeLost& loss) {  // it cannot be told any more
        if (!health_.failed(loss.node())) lose(loss.node());
        told[static_cast<std::size_t>(loss.node())] = 1;
        mailbox(loss.node()).sending = false;
      }
      std::this_thread::sleep_for(1ms);
    }
  } catch (...) {  // the network fails, too: the other nodes detect the silence
  }
  transport_->abandon();
}

/// Waits for nodes that are still working, as long as they send heartbeats.
void NodeLink::announceEnd() {
  std::vector<char> told(mailboxes_.size());
  for (;;) {
    bool all = true;
    for (int n = 0; n < nodes(); ++n) {
      if (n == node()) continue;
      auto& done = told[static_cast<std::size_t>(n)];
      if (!done && !mailbox(n).sending) {
        tell(n, NodeNotice::Goodbye);
        done = 1;
      }
      all = all && done && !mailbox(n).sending && health_.ended(n);
    }
    if (all) return;
    poll();
    beat();
    if (failing_) return;
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace muster
