<?php
// Sends events to a Tidings server. Needs PHP 8.1, and nothing else. Licence: MIT.
declare(strict_types=1);

namespace Tidings;

/** A failed request. Without a response of the server, `status` is null. */
final class TidingsException extends \RuntimeException
{
    /** @param list<array{path: list<string|int>, code: string, message: string}> $details */
    public function __construct(
        string $message,
        public readonly ?int $status = null,
        public readonly ?string $errorCode = null,
        public readonly ?string $requestId = null,
        public readonly array $details = [],
    ) {
        parent::__construct($message);
    }
}

/**
 * A client of one project. Without arguments it reads TIDINGS_URL and TIDINGS_API_KEY.
 *
 * A method returns the `data` of the response, or throws TidingsException. What failed for a
 * transient reason is sent again for up to `retrySeconds`, and makes nothing twice.
 */
final class Tidings
{
    private const TRANSIENT = [408, 429, 500, 502, 503, 504];

    private readonly string $url;
    private readonly string $apiKey;

    public function __construct(
        ?string $url = null,
        ?string $apiKey = null,
        private readonly float $timeout = 10,
        private readonly float $retrySeconds = 30,
    ) {
        $this->url = rtrim($url ?? self::env('TIDINGS_URL'), '/');
        $this->apiKey = $apiKey ?? self::env('TIDINGS_API_KEY');
    }

    /** Creates an event. The fields are those of `POST /v1/events`, such as `level: 'high'`. */
    public function send(string $title, string $channel, ?string $idempotencyKey = null, mixed ...$fields): array
    {
        $event = ['channelName' => $channel, 'title' => $title, ...$fields];
        return $this->request('POST', '/v1/events', $event, $idempotencyKey);
    }

    /** Creates or updates a user. The fields are `properties` and `aliases`. */
    public function identify(string $userId, ?string $idempotencyKey = null, mixed ...$fields): array
    {
        return $this->request('POST', '/v1/identify', ['user_id' => $userId, ...$fields], $idempotencyKey);
    }

    /**
     * Asks the members, and returns the event.
     *
     * @param array<string, string> $actions Labels of buttons by their ids.
     */
    public function ask(
        string $title,
        string $channel,
        array $actions,
        int $expiresIn = 3600,
        array $answer = [],
        mixed ...$fields,
    ): array {
        $choices = array_map(
            static fn ($id, $label) => ['id' => (string) $id, 'label' => $label],
            array_keys($actions),
            $actions,
        );
        $answer = ['expiresInSeconds' => $expiresIn, ...$answer];
        return $this->send($title, $channel, ...['actions' => $choices, 'answer' => $answer, ...$fields]);
    }

    /**
     * Returns the answer: `action` is its id, or null if `state` is `expired`. After `timeout`
     * seconds, `state` is `waiting`.
     */
    public function waitForAnswer(string $eventId, ?float $timeout = null): array
    {
        $path = '/v1/events/' . rawurlencode($eventId) . '/answer';
        $end = $timeout === null ? null : self::now() + $timeout;
        while (true) {
            $left = $end === null ? 50 : max(0, min(50, (int) ($end - self::now())));
            $answer = $this->request('GET', "$path?wait=$left", timeout: $left + $this->timeout);
            if ($answer['state'] !== 'waiting' || $left === 0) {
                return $answer;
            }
        }
    }

    /** Makes a request to another path of `/v1`, in the same way. */
    public function request(
        string $method,
        string $path,
        ?array $body = null,
        ?string $idempotencyKey = null,
        ?float $timeout = null,
    ): array {
        $headers = ["Authorization: Bearer $this->apiKey", 'Connection: close'];
        if ($body !== null) {
            // json_encode would make a list of an empty array.
            foreach (['metadata', 'properties'] as $name) {
                if (($body[$name] ?? null) === []) {
                    $body[$name] = new \stdClass();
                }
            }
            $headers[] = 'Content-Type: application/json';
            $headers[] = 'Idempotency-Key: ' . ($idempotencyKey ?? bin2hex(random_bytes(16)));
        }
        if (preg_grep('/[\r\n]/', $headers)) {
            throw new \InvalidArgumentException('The API key and the Idempotency-Key have one line');
        }
        $context = stream_context_create(['http' => [
            'method' => $method,
            'header' => $headers,
            'content' => $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION),
            'timeout' => $timeout ?? $this->timeout,
            'protocol_version' => 1.1,
            'ignore_errors' => true,
            // Keeps the API key from another server, and a POST from becoming a GET.
            'follow_location' => 0,
        ]]);
        $end = null;
        $pause = 0.25;
        while (true) {
            [$status, $text, $retryAfter] = self::call($this->url . $path, $context);
            $parsed = $text === null ? null : json_decode($text, true);
            if ($status >= 200 && $status <= 299 && isset($parsed['data'])) {
                return $parsed['data'];
            }
            if ($status === null || $status <= 299) {
                $failure = new TidingsException("No response of $this->url: " . (error_get_last()['message'] ?? ''));
            } else {
                $failure = self::toFailure($status, is_array($parsed) ? $parsed : []);
                $isTransient = in_array($status, self::TRANSIENT, true);
                if (!$isTransient && $failure->errorCode !== 'idempotency_key_in_use') {
                    throw $failure;
                }
            }
            // A random part keeps many clients from returning at the same moment.
            $random = random_int(0, 1000) / 1000;
            $wait = $retryAfter === null ? $pause * (0.5 + $random / 2) : $retryAfter + $random / 4;
            // The time begins with the first failure, because a long poll may fail late.
            $end ??= self::now() + $this->retrySeconds;
            if (self::now() + $wait > $end) {
                throw $failure;
            }
            usleep((int) ($wait * 1_000_000));
            $pause = min(2 * $pause, 8);
        }
    }

    /** Returns the status, the body and the seconds after which to try again, each or null. */
    private static function call(string $url, $context): array
    {
        error_clear_last();
        $stream = @fopen($url, 'rb', false, $context);
        if ($stream === false) {
            return [null, null, null];
        }
        $text = stream_get_contents($stream);
        $lines = stream_get_meta_data($stream)['wrapper_data'] ?? [];
        fclose($stream);
        $retryAfter = null;
        foreach ($lines as $line) {
            if (preg_match('/^Retry-After: *(\d+)\s*$/i', $line, $found)) {
                $retryAfter = (int) $found[1];
            }
        }
        return [preg_match('#^HTTP/\S+ (\d{3})#', $lines[0] ?? '', $found) ? (int) $found[1] : null, $text, $retryAfter];
    }

    private static function toFailure(int $status, array $body): TidingsException
    {
        $details = $body['details'] ?? [];
        $lines = array_map(
            static fn ($one) => (implode('.', $one['path']) ?: 'body') . ': ' . $one['message'],
            $details,
        );
        $text = $body['message'] ?? $body['error'] ?? "HTTP $status";
        $message = implode('; ', [$text, ...$lines]);
        return new TidingsException($message, $status, $body['code'] ?? null, $body['requestId'] ?? null, $details);
    }

    private static function env(string $name): string
    {
        return getenv($name) ?: throw new \InvalidArgumentException("Set $name");
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
