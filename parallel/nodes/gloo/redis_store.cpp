#include "muster/parallel/nodes/gloo/redis_store.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

#include "muster/core/base/mutex.h"
#include "muster/core/io/input_file.h"
#include "muster/parallel/nodes/gloo/no_sigpipe.h"
#include "muster/parallel/nodes/node_transport.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Connection = std::unique_ptr<redisContext, decltype(&redisFree)>;
using Words = std::initializer_list<std::string_view>;

constexpr std::size_t kMostNames = 1 << 16;
constexpr std::size_t kMostAnswer = NodeStore::kMostBytes + (std::size_t{64} << 10);  // bytes

constexpr std::size_t kMostPassword = 1 << 16;  // bytes of its file

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

std::string environmentValue(const char* variable) {
  const char* const text = std::getenv(variable);
  return text ? text : "";
}

std::string readPassword() {
  if (auto password = environmentValue("MUSTER_REDIS_PASSWORD"); !password.empty()) return password;
  const auto path = environmentValue("MUSTER_REDIS_PASSWORD_FILE");
  if (path.empty()) return {};
  try {
    InputFile file(path);
    if (file.size() > kMostPassword)
      throw FileError(path, fmt::format("is no file of a password: it has {} bytes, and at most {} are read",
                                        file.size(), kMostPassword));
    std::string password(file.size(), '\0');
    file.read(password.data(), password.size());
    password.resize(std::min(password.find('\n'), password.size()));
    if (password.ends_with('\r')) password.pop_back();
    if (password.empty()) throw FileError(path, "has no password in its first line");
    return password;
  } catch (const FileError& error) {
    throw InvalidArgument(fmt::format("store: MUSTER_REDIS_PASSWORD_FILE: {}", error.what()));
  }
}

timeval timevalOf(std::chrono::microseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_usec = (time - seconds).count()};
}

std::string textOf(const redisReply& reply) {
  return {reply.str, static_cast<std::size_t>(reply.len)};
}

/// The beginning of a server's reply, for a message.
std::string wordsOf(const redisReply& reply) {
  auto text = textOf(reply).substr(0, 200);
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

const redisReplyObjectFunctions& usualMakers() {
  static const auto makers = [] {
    const std::unique_ptr<redisReader, decltype(&redisReaderFree)> reader(redisReaderCreate(),
                                                                          &redisReaderFree);
    if (!reader) throw std::bad_alloc();
    return *reader->fn;
  }();
  return makers;
}

/// hiredis allocates as many elements of a list as the server announces, and lists may be nested. The type of
/// `count` depends on its version.
template <typename Count>
void* makeList(const redisReadTask* task, Count count) {
  if (task->parent || static_cast<std::size_t>(count) > kMostNames) return nullptr;
  return usualMakers().createArray(task, count);
}

redisReplyObjectFunctions& makers() {
  static auto makers = [] {
    auto all = usualMakers();
    all.createArray = makeList;
    return all;
  }();
  return makers;
}

class RedisStore final : public NodeStore {
 public:
  RedisStore(RedisAddress address, std::chrono::milliseconds limit)
      : address_(std::move(address)), limit_(limit), password_(readPassword()) {
    ask({"HLEN", address_.key});
    const Lock lock(mutex_);
    known_ = true;
  }

  std::string describe() const override { return address_.text(); }

  void put(const std::string& name, const std::string& text) override {
    ask({"HSET", address_.key, name, marked(text)});
  }

  bool create(const std::string& name, const std::string& text) override {
    const auto own = marked(text);
    const auto [reply, again] = ask({"HSETNX", address_.key, name, own});
    expect(*reply, REDIS_REPLY_INTEGER, "HSETNX");
    if (reply->integer == 1 || !again) return reply->integer == 1;
    // The connection was lost after the first command: its missing reply may have been "created".
    const auto there = ask({"HGET", address_.key, name}).first;
    return there->type == REDIS_REPLY_STRING && textOf(*there) == own;
  }

  std::string get(const std::string& name) override {
    const auto reply = ask({"HGET", address_.key, name}).first;
    if (reply->type == REDIS_REPLY_NIL) return {};
    expect(*reply, REDIS_REPLY_STRING, "HGET");
    auto text = textOf(*reply);
    return text.erase(0, text.find('\n') + 1);
  }

  void erase(const std::string& name) override { ask({"HDEL", address_.key, name}); }

  std::vector<std::string> names(const std::string& prefix) override {
    const auto reply = ask({"HKEYS", address_.key}).first;
    expect(*reply, REDIS_REPLY_ARRAY, "HKEYS");
    std::vector<std::string> found;
    for (std::size_t i = 0; i < static_cast<std::size_t>(reply->elements); ++i) {
      expect(*reply->element[i], REDIS_REPLY_STRING, "HKEYS");
      if (auto name = textOf(*reply->element[i]); name.starts_with(prefix)) found.push_back(std::move(name));
    }
    return found;
  }

 private:
  /// The text after a line that no other text has.
  std::string marked(const std::string& text) {
    const Lock lock(mutex_);
    if (text.size() > kMostBytes) fail(fmt::format("takes no text of more than {} bytes", kMostBytes));
    return fmt::format("{}-{}\n{}", number_, ++texts_, text);
  }

  /// Sends a command, repeatedly while a known server restarts.
  /// @return the reply, and whether the command was sent more than once.
  std::pair<Reply, bool> ask(Words words) {
    const Lock lock(mutex_);
    const NoSigpipe quiet;
    const auto end = Clock::now() + limit_;
    for (bool again = false;; again = true) {
      std::string problem = "ends the connection";
      bool restarts = known_;
      auto reply = connection_ || connect(end) ? exchange(words, end) : nullptr;
      if (reply && reply->type != REDIS_REPLY_ERROR) return {std::move(reply), again};
      if (reply) {
        const auto why = wordsOf(*reply);
        if (why.starts_with("NOAUTH"))
          fail("wants a password: MUSTER_REDIS_PASSWORD, or a file that MUSTER_REDIS_PASSWORD_FILE names");
        problem = fmt::format("refuses {}: {}", *words.begin(), why);
        restarts = restarts && why.starts_with("LOADING");
      }
      if (!restarts || Clock::now() >= end) fail(problem);
      connection_.reset();
      std::this_thread::sleep_for(50ms);
    }
  }

  /// @return false if the connection has ended.
  bool connect(Clock::time_point end) MUSTER_REQUIRES(mutex_) {
    for (;; std::this_thread::sleep_for(50ms)) {  // the server may be restarting
      const auto rest = std::chrono::ceil<std::chrono::microseconds>(end - Clock::now());
      connection_.reset(redisConnectWithTimeout(address_.host.c_str(), address_.port,
                                                timevalOf(std::max<std::chrono::microseconds>(rest, 1ms))));
      if (!connection_) fail("cannot be reached: there is no memory");
      if (connection_->err == 0) break;
      const std::string why = connection_->errstr;
      if (!known_ || Clock::now() >= end) fail("cannot be reached: " + why);
    }
    fcntl(connection_->fd, F_SETFD, FD_CLOEXEC);
    redisSetTimeout(connection_.get(), timevalOf(limit_));
    connection_->reader->fn = &makers();
    if (password_.empty()) return true;
    const auto reply = exchange({"AUTH", password_}, end);
    if (reply && reply->type == REDIS_REPLY_ERROR)
      fail("refuses the password of MUSTER_REDIS_PASSWORD or MUSTER_REDIS_PASSWORD_FILE: " + wordsOf(*reply));
    return reply != nullptr;
  }

  /// @return null if the connection has ended.
  Reply exchange(Words words, Clock::time_point end) MUSTER_REQUIRES(mutex_) {
    std::vector<const char*> begins;
    std::vector<std::size_t> sizes;
    for (const auto word : words) {
      begins.push_back(word.data());
      sizes.push_back(word.size());
    }
    auto& c = *connection_;
    redisAppendCommandArgv(&c, static_cast<int>(begins.size()), begins.data(), sizes.data());
    for (int done = 0; done == 0;) {
      await(POLLOUT, end);
      if (redisBufferWrite(&c, &done) != REDIS_OK && ended()) return nullptr;
    }
    for (std::size_t bytes = 0;;) {
      void* reply = nullptr;
      if (redisReaderGetReply(c.reader, &reply) != REDIS_OK)
        fail(c.reader->err == REDIS_ERR_OOM ? fmt::format("answers with too much to {}", *words.begin())
                                            : "does not answer as Redis does");
      if (reply) return Reply(static_cast<redisReply*>(reply));
      if (bytes > kMostAnswer)
        fail(fmt::format("answers with more than {} bytes to {}", kMostAnswer, *words.begin()));
      await(POLLIN, end);
      const std::size_t before = c.reader->len;
      if (redisBufferRead(&c) != REDIS_OK && ended()) return nullptr;
      bytes += c.reader->len - before;
    }
  }

  void await(short what, Clock::time_point end) MUSTER_REQUIRES(mutex_) {
    for (;;) {
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
      pollfd socket{.fd = connection_->fd, .events = what, .revents = 0};
      if (poll(&socket, 1, static_cast<int>(std::max<std::int64_t>(rest.count(), 0))) > 0) return;
      if (rest.count() <= 0)
        fail(fmt::format("has not answered in {} s", std::chrono::duration<double>(limit_).count()));
    }
  }

  /// After an error: whether a new connection may succeed. @throws if not.
  bool ended() MUSTER_REQUIRES(mutex_) {
    const auto& c = *connection_;
    if (c.err == REDIS_ERR_EOF) return true;
    if (c.err == REDIS_ERR_IO && (errno == ECONNRESET || errno == EPIPE)) return true;
    const std::string why = c.errstr;
    fail("cannot be reached: " + why);
  }

  [[noreturn]] void fail(const std::string& what) MUSTER_REQUIRES(mutex_) {
    connection_.reset();
    throw NodeFailure(fmt::format("the store {} {}", address_.text(), what));
  }
  void expect(const redisReply& reply, int type, std::string_view command) const {
    if (reply.type == type) return;
    throw NodeFailure(fmt::format("the store {} does not answer {} as Redis does", address_.text(), command));
  }

  const RedisAddress address_;
  const std::chrono::milliseconds limit_;
  const std::string password_;
  const std::string number_ = drawnNumber();
  Mutex mutex_;
  std::uint64_t texts_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool known_ MUSTER_GUARDED_BY(mutex_) = false;  // the server has answered, so the address is right
  Connection connection_ MUSTER_GUARDED_BY(mutex_){nullptr, &redisFree};
};

}  // namespace

std::unique_ptr<NodeStore> openRedisStore(const std::string& address, std::chrono::milliseconds limit) {
  return std::make_unique<RedisStore>(RedisAddress::parse(address), limit);
}

}  // namespace muster
