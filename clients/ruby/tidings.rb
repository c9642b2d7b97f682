# Sends events to a Tidings server. Needs Ruby 3.0, and nothing else. Licence: MIT.
require "json"
require "net/http"
require "openssl"
require "securerandom"
require "uri"

# A client of one project. Without arguments it reads TIDINGS_URL and TIDINGS_API_KEY.
#
# A method returns the `data` of the response with strings as keys, or raises Tidings::Error. What
# failed for a transient reason is sent again for up to `retry_seconds`, and makes nothing twice.
class Tidings
  # A failed request. Without a response of the server, `status` is nil.
  class Error < StandardError
    attr_reader :status, :code, :request_id, :details

    def initialize(message, status: nil, code: nil, request_id: nil, details: [])
      super(message)
      @status, @code, @request_id, @details = status, code, request_id, details
    end
  end

  TRANSIENT = [408, 429, 500, 502, 503, 504].freeze
  NO_RESPONSE = [
    SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError,
    Net::HTTPBadResponse, Net::HTTPHeaderSyntaxError, Net::ProtocolError, JSON::ParserError
  ].freeze
  private_constant :TRANSIENT, :NO_RESPONSE

  def initialize(url: nil, api_key: nil, timeout: 10, retry_seconds: 30)
    @url = (url || ENV.fetch("TIDINGS_URL")).sub(%r{/+\z}, "")
    @api_key = api_key || ENV.fetch("TIDINGS_API_KEY")
    @timeout = timeout
    @retry_seconds = retry_seconds
  end

  # Creates an event. `fields` are those of `POST /v1/events`, such as `level: "high"`.
  def send(title, channel, idempotency_key: nil, **fields)
    event = { channelName: channel, title: title, **fields }
    request("POST", "/v1/events", event, idempotency_key: idempotency_key)
  end

  # Creates or updates a user. `fields` are `properties` and `aliases`.
  def identify(user_id, idempotency_key: nil, **fields)
    user = { user_id: user_id, **fields }
    request("POST", "/v1/identify", user, idempotency_key: idempotency_key)
  end

  # Asks the members, and returns the event. `actions` maps ids to labels of buttons.
  def ask(title, channel, actions, expires_in: 3600, answer: {}, **fields)
    choices = actions.map { |id, label| { id: id, label: label } }
    send(title, channel, actions: choices, answer: { expiresInSeconds: expires_in, **answer }, **fields)
  end

  # Returns the answer: `action` is its id, or nil if `state` is `expired`. After `timeout` seconds,
  # `state` is `waiting`.
  def wait_for_answer(event_id, timeout: nil)
    path = "/v1/events/#{URI.encode_www_form_component(event_id)}/answer"
    finish = timeout && now + timeout
    loop do
      left = finish ? (finish - now).to_i.clamp(0, 50) : 50
      answer = request("GET", "#{path}?wait=#{left}", timeout: left + @timeout)
      return answer if answer["state"] != "waiting" || left.zero?
    end
  end

  # Makes a request to another path of `/v1`, in the same way.
  def request(method, path, body = nil, idempotency_key: nil, timeout: @timeout)
    headers = { "Authorization" => "Bearer #{@api_key}" }
    unless body.nil?
      headers["Content-Type"] = "application/json"
      headers["Idempotency-Key"] = idempotency_key || SecureRandom.uuid
      body = JSON.generate(body)
    end
    finish = nil
    pause = 0.25
    loop do
      wait = nil
      begin
        response = call(method, URI(@url + path), body, headers, timeout)
        status = response.code.to_i
        return JSON.parse(response.body)["data"] if status.between?(200, 299)
        failure = to_failure(status, response.body)
        raise failure unless TRANSIENT.include?(status) || failure.code == "idempotency_key_in_use"
        wait = response["Retry-After"].to_i if response["Retry-After"]&.match?(/\A\d+\z/)
      rescue *NO_RESPONSE => error
        failure = Error.new("No response of #{@url}: #{error.message}")
      end
      # A random part keeps many clients from returning at the same moment.
      wait = wait ? wait + rand / 4 : pause * rand(0.5..1.0)
      # The time begins with the first failure, because a long poll may fail late.
      finish ||= now + @retry_seconds
      raise failure if now + wait > finish
      sleep(wait)
      pause = [2 * pause, 8].min
    end
  end

  private

  def call(method, uri, body, headers, timeout)
    http = Net::HTTP.new(uri.host, uri.port)
    http.use_ssl = uri.scheme == "https"
    http.open_timeout = http.write_timeout = @timeout
    http.read_timeout = timeout
    http.max_retries = 0
    http.start { http.send_request(method, uri.request_uri, body, headers) }
  end

  def to_failure(status, text)
    body = begin
      JSON.parse(text)
    rescue JSON::ParserError, TypeError
      {}
    end
    body = {} unless body.is_a?(Hash)
    details = body["details"] || []
    lines = details.map { |one| "#{one["path"].empty? ? "body" : one["path"].join(".")}: #{one["message"]}" }
    message = [body["message"] || body["error"] || "HTTP #{status}", *lines].join("; ")
    Error.new(message, status: status, code: body["code"], request_id: body["requestId"], details: details)
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
