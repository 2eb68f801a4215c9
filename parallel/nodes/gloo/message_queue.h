#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "muster/core/base/mutex.h"
#include "muster/parallel/nodes/node_transport.h"

namespace gloo::transport {
class Context;
class UnboundBuffer;
}  // namespace gloo::transport

namespace muster {

/// The results of messages. All members are thread-safe.
class Outcomes {
 public:
  struct Loss {
    int node = 0;
    std::string why;
  };

  void done(int ticket, int node, bool received) {
    const Lock lock(mutex_);
    done_.push_back({ticket, node, received});
    if (news_) news_();
  }
  void lost(int node, const std::string& why) {
    const Lock lock(mutex_);
    losses_.push_back({node, why});
    if (news_) news_();
  }
  void failed(std::exception_ptr problem) {
    const Lock lock(mutex_);
    if (!problem_) problem_ = std::move(problem);
    if (news_) news_();
  }
  /// Adds the tickets of the messages done since the last call.
  /// @param hear  called with the node of each message that was received.
  /// @return whether any message was done.
  bool take(std::vector<int>& tickets, const std::function<void(int)>& hear);
  /// The first loss that was not taken yet. @throws the exception given to `failed`.
  std::optional<Loss> nextLoss();
  /// Calls `news` at each outcome from now on. After `onNews({})` returns, no call is in progress.
  void onNews(std::function<void()> news) {
    const Lock lock(mutex_);
    news_ = std::move(news);
  }

 private:
  struct Done {
    int ticket, node;
    bool received;
  };
  Mutex mutex_;
  std::vector<Done> done_ MUSTER_GUARDED_BY(mutex_);
  std::deque<Loss> losses_ MUSTER_GUARDED_BY(mutex_);
  std::exception_ptr problem_ MUSTER_GUARDED_BY(mutex_);
  std::function<void()> news_ MUSTER_GUARDED_BY(mutex_);
};

/// The messages of one channel in one direction between this node and another one, and a thread that waits
/// for them in order. (Only a blocking call of Gloo shows whether a message is done, and a call that waits
/// too long closes all connections.)
class MessageQueue {
 public:
  MessageQueue(std::shared_ptr<gloo::transport::Context> context, Outcomes& outcomes);
  /// Aborts open messages; their bytes are not used any more.
  ~MessageQueue();
  MessageQueue(const MessageQueue&) = delete;
  MessageQueue& operator=(const MessageQueue&) = delete;

  /// Does not wait. @throws what Gloo throws if the connection is broken.
  void begin(const NodeMessage& message, int ticket);

 private:
  /// The header that is sent before each message. Gloo ends the process if a message is longer than the
  /// receiver's memory. So the size is part of the name that both sides give the message, and a message of
  /// another size is never sent.
  struct Announcement {
    std::uint64_t magic = 0x6d7573746572676c;
    std::int64_t channel = 0;
    std::int64_t bytes = 0;
  };
  struct Transfer {
    NodeMessage message;
    int ticket = 0;
    Announcement announcement;
    std::unique_ptr<gloo::transport::UnboundBuffer> head = nullptr, body = nullptr;
  };

  static void requireExpected(const NodeMessage& message, const Announcement& announced);
  void run();

  const std::shared_ptr<gloo::transport::Context> context_;
  Outcomes& outcomes_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Transfer> transfers_ MUSTER_GUARDED_BY(mutex_);  // the thread waits for the first one
  bool ending_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: uses the members above
};

}  // namespace muster
