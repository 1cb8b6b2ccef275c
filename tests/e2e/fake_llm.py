# SPDX-License-Identifier: Apache-2.0
"""An OpenAI-compatible server whose every reply a test chooses."""

import http.server
import json
import threading


class FakeLlm:
    """Answers chat completions with `reply`; None never answers. A context
    manager; `requests` holds what was asked."""

    def __init__(self, reply):
        self.reply = reply
        self.requests = []
        self._release = threading.Event()
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # noqa: N802
                length = int(self.headers["Content-Length"])
                fake.requests.append((dict(self.headers), json.loads(self.rfile.read(length))))
                if fake.reply is None:
                    fake._release.wait()
                    self.close_connection = True
                    return
                message = {"role": "assistant", "content": fake.reply}
                body = json.dumps(
                    {
                        "id": "reply",
                        "object": "chat.completion",
                        "model": "fake",
                        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
                    }
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
