// The console: reads one stream of events and shows it. What comes from outside is only ever set as text.
'use strict';
(() => {
  const KEY = 'contextweaver-console-token';
  const MOST_CALLS = 200;
  const $ = (id) => document.getElementById(id);
  const calls = [];
  let token = '';
  let state = null;
  let connected = false;

  function element(name, content, ...classes) {
    const made = document.createElement(name);
    if (content !== undefined && content !== null) made.textContent = String(content);
    classes.filter(Boolean).forEach((one) => made.classList.add(one));
    return made;
  }

  const number = (value) => (value === null || value === undefined ? '–' : Number(value).toLocaleString('en'));
  const set = (id, text) => {
    if ($(id).textContent !== text) $(id).textContent = text;
  };

  function row(cells, label) {
    const made = document.createElement('tr');
    cells.forEach(([content, ...classes], at) => {
      const cell = element(at === label ? 'th' : 'td', content instanceof Node ? undefined : content, ...classes);
      if (at === label) cell.scope = 'row';
      if (content instanceof Node) cell.append(content);
      made.append(cell);
    });
    return made;
  }

  // Rows are replaced only when they say something else: a reader keeps its place.
  const drawn = new Map();
  function draw(id, value, make) {
    const text = JSON.stringify(value);
    if (drawn.get(id) === text) return;
    drawn.set(id, text);
    $(id).replaceChildren(...make(value));
  }

  function withRemedy(text, kind, remedy) {
    const whole = element('span', text, kind);
    if (!remedy) return whole;
    const both = element('span');
    both.append(whole, element('span', remedy, 'remedy'));
    return both;
  }

  function showServers() {
    draw('servers-rows', state.servers, (servers) => servers.map((server) => {
      const kind = server.fault ? 'bad' : server.circuit === 'closed' ? 'good' : 'warn';
      const health = server.fault || (server.circuit === 'closed' ? 'healthy' : `circuit breaker ${server.circuit}`);
      return row([[server.name], [withRemedy(health, kind, server.remedy)], [number(server.tools), 'n'],
        [number(server.resources), 'n'], [number(server.prompts), 'n'], [server.version || '–']], 0);
    }));
  }

  function showTools() {
    set('tools-count', number(state.tools.all));
    const definitions = state.definitions;
    const spared = definitions ? `Definitions: ${number(definitions.listed)} tokens instead of ${number(definitions.servers)}. ` : '';
    const shown = state.tools.some.length;
    set('tools-note', spared + (shown < state.tools.all ? `The ${shown} with the most tokens are shown.` : ''));
    draw('tools-rows', state.tools.some, (tools) => tools.map((tool) => row([[tool.id], [number(tool.tokens), 'n'],
      [number(tool.calls), 'n'], [number(tool.failed), 'n', tool.failed ? 'bad' : ''],
      [tool.calls ? tool.mean_ms.toFixed(1) : '–', 'n']], 0)));
  }

  function showSavings() {
    set('savings-line', state.savings || 'Nothing has been called yet, or the mode is not gateway, the only one that counts tokens.');
    const points = state.history;
    const most = Math.max(1, ...points.map((point) => Math.max(point[1], point[2])));
    const line = (which) => points.map((point, at) => {
      const x = points.length < 2 ? 0 : (at / (points.length - 1)) * 600;
      return `${x.toFixed(1)},${(115 - (point[which] / most) * 110).toFixed(1)}`;
    }).join(' ');
    $('chart-without').setAttribute('points', line(1));
    $('chart-with').setAttribute('points', line(2));
    const last = points[points.length - 1];
    if (last) {
      const minutes = Math.round((last[0] - points[0][0]) / 60);
      set('chart-text', `Tokens over ${minutes} minutes: ${number(last[1])} without the gateway, ${number(last[2])} with it`);
    }
  }

  function difference(pin) {
    const shown = element('pre');
    for (const [kind, text] of pin.diff) {
      const line = element('span', `${kind === 'add' ? '+ ' : kind === 'gone' ? '- ' : '  '}${text}\n`, kind);
      shown.append(line);
    }
    return shown;
  }

  function showPins() {
    set('pins-count', number(state.pins.length));
    draw('pins-list', state.pins, (pins) => pins.map((pin) => {
      const item = element('li');
      item.append(element('h3', pin.id), element('p', pin.reason));
      if (pin.diff && pin.diff.length) item.append(difference(pin));
      item.append(element('p', pin.remedy, 'remedy'));
      return item;
    }));
  }

  function showArtifacts() {
    const all = state.artifacts;
    set('artifacts-line', `${number(all.count)} ${all.count === 1 ? 'result' : 'results'}, ${number(all.bytes)} bytes, kept ${all.on_disk ? 'on disk' : 'in memory'}.`);
    draw('artifacts-rows', all.largest, (largest) => largest.map((one) =>
      row([[one.handle], [one.media_type], [number(one.bytes), 'n']], 0)));
  }

  function showApprovals() {
    const waiting = state.approvals;
    set('approvals-count', number(waiting.length));
    document.title = `${waiting.length ? `(${waiting.length}) ` : ''}contextweaver console`;
    const list = $('approvals-list');
    const ids = new Set(waiting.map((one) => String(one.id)));
    for (const old of [...list.children]) {
      if (ids.has(old.dataset.id)) continue;
      const had = old.contains(document.activeElement);
      old.remove();
      if (had) $('main').focus();
    }
    for (const one of waiting) {
      if ([...list.children].some((item) => item.dataset.id === String(one.id))) continue;
      const item = element('li');
      item.dataset.id = one.id;
      item.append(element('h3', one.item), element('p', `${one.caller}${one.profile ? ` (${one.profile})` : ''}: ${one.reason}`));
      if (one.arguments.length) item.append(element('pre', one.arguments.join('\n')));
      for (const [text, approve, kind] of [['Approve', true, 'yes'], ['Decline', false, 'no']]) {
        const button = element('button', text, kind);
        button.type = 'button';
        button.setAttribute('aria-label', `${text} the call of ${one.item} by ${one.caller}`);
        button.addEventListener('click', () => answer(one, approve));
        item.append(button);
      }
      list.append(item);
    }
  }

  async function answer(one, approve) {
    const response = await fetch(`api/approvals/${one.id}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ approve }),
    }).catch(() => null);
    // Why an answer did not count matters: somebody else may have approved what was declined here.
    const why = response && !response.ok && (await response.text().catch(() => '')).trim();
    const failed = `Not answered (${why || 'the gateway cannot be reached'})`;
    set('answered', `${response && response.ok ? (approve ? 'Approved' : 'Declined') : failed}: ${one.item}`);
  }

  function showCalls() {
    if ($('pause').checked) return;
    const words = $('filter').value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = calls.filter((call) => words.every((word) =>
      `${call.tool} ${call.caller} ${call.decision} ${call.code}`.toLowerCase().includes(word)));
    draw('calls-rows', wanted, (list) => list.map((call) => {
      const time = new Date(call.time * 1000).toLocaleTimeString('en-GB');
      const kind = call.code === 'OK' ? 'good' : call.decision === 'refuse' ? 'warn' : 'bad';
      const by = [call.decision, call.rule && `by ${call.rule}`, !call.rule && call.guard && `by ${call.guard}`,
        call.approver && `answered by the ${call.approver}`].filter(Boolean).join(', ');
      return row([[time, 'time'], [call.tool], [call.caller], [by], [withRemedy(call.code, kind, call.remedy)],
        [call.result_tokens === null ? number(call.tokens) : `${number(call.tokens)} of ${number(call.result_tokens)}`, 'n'],
        [number(call.bytes), 'n'], [call.ms.toFixed(1), 'n']], 1);
    }));
  }

  function take(message) {
    if (message.type === 'state') {
      state = message.state;
      set('name', state.name);
      showApprovals();
      showServers();
      showTools();
      showSavings();
      showPins();
      showArtifacts();
      document.documentElement.dataset.ready = 'yes';
    } else if (message.type === 'calls') {
      calls.unshift(...message.calls.slice().reverse());
      calls.length = Math.min(calls.length, MOST_CALLS);
      showCalls();
    } else if (message.type === 'missed') {
      set('missed', `${number(message.count)} calls came too fast to be shown.`);
    }
  }

  async function follow() {
    const response = await fetch('api/events', { headers: { authorization: `Bearer ${token}` } });
    if (response.status === 401) return 'refused';
    if (!response.ok) throw new Error(`the gateway answers ${response.status}`);
    connected = true;
    calls.length = 0;
    set('connection', 'live');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return 'ended';
      text += value;
      const events = text.split('\n\n');
      text = events.pop();
      for (const event of events) {
        const data = event.split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
        if (data.length) take(JSON.parse(data.join('\n')));
      }
    }
  }

  function login(refused) {
    $('login').hidden = false;
    set('refused', refused ? 'This is not the token of this gateway.' : '');
    set('connection', 'not connected');
    $('token').focus();
  }

  async function run() {
    for (;;) {
      let end;
      try {
        end = await follow();
      } catch (error) {
        end = 'broken';
      }
      if (end === 'refused') {
        sessionStorage.removeItem(KEY);
        login(true);
        return;
      }
      set('connection', connected ? 'connection lost, trying again' : 'the gateway does not answer, trying again');
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }

  $('login').addEventListener('submit', (event) => {
    event.preventDefault();
    token = $('token').value.trim();
    $('login').hidden = true;
    sessionStorage.setItem(KEY, token);
    run();
  });
  $('filter').addEventListener('input', showCalls);
  $('pause').addEventListener('change', showCalls);

  // The token stands behind the # of the address, which no browser sends, and does not stay there.
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, '', location.pathname);
  }
  token = given || sessionStorage.getItem(KEY) || '';
  if (token) run();
  else login(false);
})();
