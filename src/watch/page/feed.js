// Server-sent events with a token, if required. EventSource cannot send a header, and a token must not be in an address, so
// the stream is read with fetch. A broken feed reconnects and resumes after its last event.

const waitMsMin = 500;
const waitMsMax = 5000;

/**
 * Follows until `signal` aborts. Calls `received(name, data)` for each event, and `opened()` at each connection. If the
 * server refuses the request, calls `refused(text)` and ends; if a token is required, `locked(wasWrong)`. `since` is the id
 * of the last event received before.
 */
export async function follow(path, { received, opened, refused, locked, signal, since = '' }) {
  let lastId = since;
  for (let waitMs = waitMsMin; !signal.aborted; waitMs = Math.min(waitMsMax, waitMs * 2)) {
    try {
      const token = sessionStorage.getItem('sluice-token');
      const headers = {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(lastId === '' ? {} : { 'last-event-id': lastId }),
      };
      // From the origin: the page's own address may contain a name and a password, which fetch refuses.
      const response = await fetch(new URL(path, location.origin), {
        headers,
        cache: 'no-store',
        signal,
      });
      if (response.status === 401) return locked(token !== null);
      if (response.status === 400 || response.status === 403 || response.status === 404) {
        return refused((await response.text()).trim());
      }
      if (response.ok) {
        waitMs = waitMsMin;
        opened();
        for await (const { id, name, data } of eventsOf(response.body)) {
          if (id !== undefined) lastId = id;
          received(name, JSON.parse(data));
        }
      }
    } catch {
      // The server is down or restarting; the line at the top shows since when.
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

/** Sends a command; true: it failed. */
export async function send(path) {
  const token = sessionStorage.getItem('sluice-token');
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const address = new URL(path, location.origin);
  const response = await fetch(address, { method: 'POST', headers }).catch(() => null);
  return response?.ok !== true;
}

/** Events in the form that the server writes: each field on one line. */
async function* eventsOf(body) {
  let rest = '';
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  // Safari cannot walk a stream with `for await`.
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const texts = (rest + part.value).split('\n\n');
    rest = texts.pop() ?? '';
    for (const text of texts) {
      const fields = text.split('\n').map((line) => {
        const colon = line.indexOf(': ');
        return [line.slice(0, colon), line.slice(colon + 2)];
      });
      const { id, event, data } = Object.fromEntries(fields);
      yield { id, name: event, data };
    }
  }
}
